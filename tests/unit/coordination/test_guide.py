"""The guide's programs use what the library has."""

import ast
import importlib
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "coordination.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.split("\n")[0][:40])
def test_every_program_imports_only_what_exists(program: str) -> None:
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module} has no {name.name}"


@pytest.mark.parametrize("link", re.findall(r"\]\((\.\./[^)#]+)", GUIDE.read_text()))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (GUIDE.parent / link).exists()


def test_there_are_programs_for_all_uses() -> None:
    text = "".join(PROGRAMS)
    for name in ("Election(", "BalancedJobs(", "Producer(", "Consumer(", "Autoscaler(", "Group("):
        assert name in text
