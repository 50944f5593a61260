"""The program: each command is imported when it is asked for, and none is missing."""

import ast
import subprocess
import sys
from pathlib import Path

from shoal.client import cli
from shoal.client.cli.app import COMMANDS, commands_of

ROOM = Path(cli.__file__).parent
# Registers commands of a group, for the group's own module.
PARTS = {"access.restrictions"}


def test_every_module_with_commands_is_in_the_table() -> None:
    found = {
        ".".join(path.relative_to(ROOM).with_suffix("").parts)
        for path in ROOM.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "register"
    }
    assert found - PARTS == set(COMMANDS)


def test_table_has_the_commands_that_a_module_registers() -> None:
    assert {module: tuple(commands_of(module)) for module in COMMANDS} == COMMANDS


def test_a_command_imports_its_own_module_alone() -> None:
    code = (
        "import sys; from shoal.client.cli import run; run(['status', '--help']);"
        "print(*(name for name in sys.modules if name.startswith('shoal.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "shoal.client.cli.cluster.status" in loaded
    others = {f"shoal.client.cli.{module}" for module in COMMANDS} - {
        "shoal.client.cli.cluster.status"
    }
    assert loaded & others == set()
    assert "shoal.client.rest.client" not in loaded
