"""The runner, on a tree of its own: a program with one check, and tests of it."""

import os
from pathlib import Path

import pytest

from tests.mutations import running, tree
from tests.mutations.mutation import DoesNotApply, Mutation, Promise, mutation
from tests.mutations.patience import LADDER
from tests.mutations.running import BaselineFailed, Result
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

def test_that_is_skipped():
    pytest.skip("not here")
"""
PATIENCE = """\
import os, time
from pathlib import Path
from shoal.purse import withdraw

DEADLINE_S = float(os.environ["SHOAL_TEST_DEADLINE_S"])

def test_that_waits_for_its_deadline():
    note = Path(__file__).parents[2] / "deadlines.txt"
    with note.open("a") as file:
        print(DEADLINE_S, file=file)
    assert withdraw(3, 2) == 1
    # As on a machine on which 15 seconds are needed, without anybody's waiting for them.
    assert DEADLINE_S > 15, "waited in vain"
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
    (base / "tests/test_patience.py").write_text(PATIENCE)
    for file in ("__init__.py", "mutations/__init__.py", "mutations/witness.py"):
        (base / "tests" / file).write_text((tree.ROOT / "tests" / file).read_text())
    return base


def purse(name: str, old: str, new: str, test: str) -> Mutation:
    killers = (f"tests/test_purse.py::{test}",)
    return mutation(name, Promise.NOTHING_LOST, "code/shoal/purse.py", (old, new), killers)


async def run(base: Path, *mutations: Mutation) -> list[Result]:
    told: list[Result] = []
    patience = await running.baseline(base, mutations, 2)
    results = await running.run_all(base, base.parent, mutations, 2, told.append, patience)
    assert {result.mutation.name for result in told} == {each.name for each in mutations}
    return results


async def test_each_mutation_gets_its_verdict(base: Path) -> None:
    check = "if amount > balance:"
    mutations = (
        purse("noticed", check, "if False:", "test_too_much"),
        purse("not noticed", check, "if False:", "test_enough"),
        purse("nonsense", check, "if amont > balance:", "test_enough"),
        purse("no program", check, "if amount > :", "test_enough"),
    )
    results = await run(base, *mutations)
    assert [result.verdict for result in results] == [
        Verdict.KILLED,
        Verdict.SURVIVED,
        Verdict.BROKEN,
        Verdict.BROKEN,
    ]
    assert (base / "code/shoal/purse.py").read_text() == PROGRAM
    assert [path.name for path in base.parent.iterdir()] == ["base"]  # the copies are gone


async def test_what_mutated_code_leaves_running_is_killed(base: Path) -> None:
    left = purse("left", "balance - amount", "1", "test_that_leaves_a_process_behind")
    (result,) = await run(base, left)
    assert result.verdict is Verdict.KILLED
    pid = int((base.parent / "left.pid").read_text().rstrip("."))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_waits_are_as_long_as_a_killer_needs_without_a_mutation(base: Path) -> None:
    killer = "tests/test_patience.py::test_that_waits_for_its_deadline"
    change = ("balance - amount", "2")
    slow = mutation("slow", Promise.PROGRESS, "code/shoal/purse.py", change, (killer,))
    patience = await running.baseline(base, [slow], 2)
    assert patience[killer].deadline_s > 15
    (result,) = await running.run_all(base, base.parent, [slow], 2, lambda _: None, patience)
    assert result.verdict is Verdict.KILLED
    first, *others, last = map(float, (base.parent / "deadlines.txt").read_text().split())
    assert first == LADDER[0]
    assert others[-1] == last == patience[killer].deadline_s


async def test_tests_that_prove_nothing_are_refused(base: Path) -> None:
    for test in ("test_that_is_skipped", "test_of_nothing"):
        with pytest.raises(BaselineFailed, match=test):
            await running.baseline(base, [purse("a", "balance", "b", test)], 1)


@pytest.mark.parametrize("old", ["no such text", "balance"], ids=["gone", "ambiguous"])
async def test_mutation_that_no_longer_fits_says_so(base: Path, old: str) -> None:
    with pytest.raises(DoesNotApply, match="'m' no longer applies"):
        purse("m", old, "", "test_enough").apply(base)
