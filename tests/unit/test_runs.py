"""The commands of the suite together run every test, and the runner does not hide a failure."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.__main__ import RUN_AGAIN, Result, run_all, summarise
from tests.support.database import databases
from tests.support.database.turns import VARIABLE
from tests.support.runs import (
    LONG_FORMS,
    QUICK,
    SEPARATE,
    TESTS,
    THOROUGH,
    Part,
    Share,
    every_file,
    parts,
)


def files(share: Share) -> Counter[Path]:
    again = {"long forms", "second database", "coordination, ensemble"}
    return Counter(file for part in parts(share) if part.name not in again for file in part.files)


def test_make_test_and_make_test_all_together_run_every_file_once() -> None:
    assert files(Share.MAIN) + files(Share.REST) == Counter(every_file())
    assert set(every_file()) == {
        file
        for file in TESTS.rglob("test_*.py")
        if file.relative_to(TESTS).parts[0] not in SEPARATE
    }


def test_both_turns_together_use_both_databases_and_run_no_test_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    params = [{"kind": "sqlite"}, {"kind": "postgresql"}, {"text": "sqlite:///"}, None]
    tests: list[Any] = [
        SimpleNamespace()
        if each is None
        else SimpleNamespace(callspec=SimpleNamespace(params=each))
        for each in params
    ]
    dropped: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items))
    config: Any = SimpleNamespace(hook=hook)
    left = {}
    for turn in ("first", "second", ""):
        monkeypatch.setenv(VARIABLE, turn)
        left[turn] = tests.copy()
        databases.pytest_collection_modifyitems(config, left[turn])
    assert left == {"first": tests[1:], "second": tests[:1], "": tests}
    assert dropped == tests[:1] + tests[1:]


def test_each_part_on_one_database_runs_on_the_other_one_too() -> None:
    first = {f for p in parts(Share.MAIN) if VARIABLE in p.variables for f in p.files}
    [again] = [part for part in parts(Share.REST) if VARIABLE in part.variables]
    assert first - {TESTS / name for name in LONG_FORMS} == set(again.files)


def test_make_quick_runs_a_part_of_make_test() -> None:
    assert not files(Share.QUICK) - files(Share.MAIN)


@pytest.mark.parametrize("glob", [*THOROUGH, *LONG_FORMS, *QUICK, *SEPARATE])
def test_every_glob_names_something(glob: str) -> None:
    assert list(TESTS.glob(glob))


def test_every_file_with_a_long_form_runs_in_its_long_form() -> None:
    users = {file for file in every_file() if "tests.support.length" in file.read_text("utf-8")}
    assert {TESTS / name for name in LONG_FORMS} == users - {Path(__file__)}


def test_a_part_that_ends_badly_counts_as_failed_even_without_a_report(tmp_path: Path) -> None:
    result = Result.read("sql", tmp_path / "absent.xml", 3, 1.0, 1.0)
    assert (result.passed, result.failed, result.is_clean) == (0, 1, False)


def test_a_report_is_counted(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite errors="1" failures="2" skipped="3" tests="10"/></testsuites>'
    )
    result = Result.read("sql", report, 1, 1.0, 1.0)
    assert (result.passed, result.failed, result.skipped) == (4, 3, 3)


#: Tests that fail the first time, one that may fail always, and one that passes.
UNSTEADY = """
import pathlib, pytest
@pytest.mark.parametrize("n", range({count}))
def test_once(n):
    seen = pathlib.Path(__file__).with_name(f"seen-{{n}}")
    if not seen.exists():
        seen.touch()
        pytest.fail("the first time")
def test_never():
    assert {passes}
def test_always():
    pass
"""


@pytest.mark.parametrize(
    ("count", "passes", "result"),
    [
        (1, True, (3, 0, ["test_once[0]"])),
        (1, False, (2, 1, ["test_once[0]"])),
        (RUN_AGAIN + 1, True, (2, RUN_AGAIN + 1, [])),
    ],
    ids=["once", "twice", "too many"],
)
def test_a_few_failed_tests_run_once_more_alone(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    count: int,
    passes: bool,
    result: tuple[int, int, list[str]],
) -> None:
    file = tmp_path / "test_unsteady.py"
    file.write_text(UNSTEADY.format(count=count, passes=passes))
    [found] = run_all([Part("one", (file,))], [], tmp_path)
    names = [test.rpartition("::")[2] for test in found.unsteady]
    assert (found.passed, found.failed, names) == result
    summarise([found])
    *_, listed, last = capsys.readouterr().out.splitlines()
    assert last == f"{found.passed} passed, {found.failed} failed, 0 skipped"
    assert listed.startswith("unsteady (failed beside others, passed alone): ") == bool(names)


def test_a_part_that_did_not_end_in_order_is_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "test_crash.py"
    file.write_text(
        "import os, pathlib\n"
        "def test_crash():\n"
        "    seen = pathlib.Path(__file__).with_name('seen')\n"
        "    seen.exists() or (seen.touch(), os._exit(1))\n"
    )
    [found] = run_all([Part("one", (file,))], [], tmp_path)
    assert (found.failed, found.unsteady) == (1, ())
