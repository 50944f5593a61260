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
from tests.mutations.record import Record
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

def test_wrong():
    assert withdraw(3, 2) == 2

def test_skipped():
    raise pytest.skip.Exception("no bank")

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
    found = await running.baseline(base, mutations, 2)
    assert not found.failed
    results = await running.run_all(
        base, base.parent, mutations, 2, reported.append, found.patience
    )
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


async def test_a_test_that_fails_without_the_mutation_proves_nothing_and_stops_nothing(
    base: Path,
) -> None:
    edit = PURSE.never("amount > balance")
    tests = ("test_wrong", "test_skipped", "test_too_much")
    mutations = [mutation(test, edit, test) for test in tests]
    found = await running.baseline(base, mutations, 2)
    assert {each.partition("::")[2] for each in found.failed} == {"test_wrong", "test_skipped"}
    assert {each.partition("::")[2] for each in found.patience} == {"test_too_much"}
    unproven = [*found.results(mutations)]
    assert [each.mutation.name for each in unproven] == ["test_wrong", "test_skipped"]
    assert {each.verdict for each in unproven} == {Verdict.UNPROVEN}
    assert "AssertionError" in unproven[0].why


def test_a_noticed_mutation_is_known_until_its_code_or_its_tests_change(
    base: Path, tmp_path: Path
) -> None:
    file = tmp_path / "verdicts.jsonl"
    edit = PURSE.never("amount > balance")
    noticed, missed = (mutation(test, edit, test) for test in ("test_too_much", "test_enough"))
    record = Record(file, "1234abcd")
    record.add(Result(noticed, Verdict.KILLED, "it failed", 1.25, "printed"), base)
    record.add(Result(missed, Verdict.SURVIVED, "it passed", 1.0, "printed"), base)
    with file.open("a") as cut_off:
        cut_off.write('{"mutation": "test_enough", "verd')

    record = Record(file, "5678")
    known = record.known(noticed, base)
    assert known is not None
    assert (known.verdict, known.why) == (Verdict.KILLED, "it failed")
    assert record.known(missed, base) is None
    (base / "code/shoal/purse.py").write_text(PROGRAM + "# more\n")
    assert record.known(noticed, base) is None
    (base / "code/shoal/purse.py").write_text(PROGRAM)
    assert record.known(noticed, base) is not None
    (base / "tests/test_purse.py").write_text(TESTS + "# more\n")
    assert record.known(noticed, base) is None
