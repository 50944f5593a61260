"""The runner, on a separate tree: a program with one check, and tests of it.

Without these tests a mutation could pass for noticed because its test failed on nonsense, or could
not be run at all.
"""

import os
from pathlib import Path

import pytest

from tests.mutations import running, tree
from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Edit, Place
from tests.mutations.running import Result
from tests.mutations.verdict import Verdict

pytestmark = pytest.mark.timeout(600)  # each starts several pytests

PROGRAM = """\
def withdraw(balance: int, amount: int) -> int:
    if amount > balance:
        raise ValueError("not enough")
    return balance - amount
"""
TESTS = """\
import pathlib, subprocess, sys, time
import pytest
from shoal.purse import withdraw

def test_enough():
    assert withdraw(3, 2) == 1

def test_too_much():
    if withdraw(3, 3) == 0:
        with pytest.raises(ValueError):
            withdraw(3, 4)

def test_that_leaves_a_process_behind():
    note = pathlib.Path(__file__).parents[2] / "left.pid"
    code = (
        "import os, pathlib, signal, sys; os.fork() and os._exit(0); os.setsid();"
        "pathlib.Path(sys.argv[1]).write_text(f'{os.getpid()}.'); signal.pause()"
    )
    if withdraw(3, 3):
        subprocess.run([sys.executable, "-c", code, str(note)], check=True)
        while not note.exists() or not note.read_text().endswith("."):
            time.sleep(0.01)
        pytest.fail("wrong")
"""
PROJECT = """\
[tool.hatch.build]
dev-mode-dirs = ["code"]
[tool.pytest.ini_options]
addopts = ""
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A tree with a program, its tests and the witness."""
    base = tmp_path / "base"
    for folder in ("code/shoal", "tests/mutations"):
        (base / folder).mkdir(parents=True)
    (base / "pyproject.toml").write_text(PROJECT)
    (base / "code/shoal/purse.py").write_text(PROGRAM)
    (base / "tests/test_purse.py").write_text(TESTS)
    for file in ("__init__.py", "mutations/__init__.py", "mutations/witness.py"):
        (base / "tests" / file).write_text((tree.ROOT / "tests" / file).read_text())
    return base


PURSE = Place("shoal.purse")["withdraw"]


def mutation(name: str, edit: Edit, test: str) -> Mutation:
    return Promise.NOTHING_LOST.broken_if(name, edit, f"tests/test_purse.py::{test}")


async def test_each_mutation_gets_its_verdict_and_leaves_nothing_behind(base: Path) -> None:
    check = "amount > balance"
    mutations = (
        mutation("noticed", PURSE.never(check), "test_too_much"),
        mutation("not noticed", PURSE.never(check), "test_enough"),
        mutation("nonsense", PURSE.replace(check, "amont > balance"), "test_enough"),
        mutation(
            "left", PURSE.replace("balance - amount", "1"), "test_that_leaves_a_process_behind"
        ),
    )
    reported: list[Result] = []
    patience = await running.baseline(base, mutations, 2)
    results = await running.run_all(base, base.parent, mutations, 2, reported.append, patience)
    assert [result.verdict for result in results] == [
        Verdict.KILLED,
        Verdict.SURVIVED,
        Verdict.BROKEN,
        Verdict.KILLED,
    ]
    assert {result.mutation for result in reported} == {*mutations}
    assert (base / "code/shoal/purse.py").read_text() == PROGRAM
    assert sorted(path.name for path in base.parent.iterdir()) == ["base", "left.pid"]
    pid = int((base.parent / "left.pid").read_text().rstrip("."))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
