"""The commands of the suite together run every test, and the runner does not hide a failure."""

from collections import Counter
from pathlib import Path

import pytest

from tests.__main__ import Result
from tests.support.runs import (
    LONG_FORMS,
    QUICK,
    SEPARATE,
    TESTS,
    THOROUGH,
    Share,
    every_file,
    parts,
)


def files(share: Share) -> Counter[Path]:
    return Counter(file for part in parts(share) if not part.variables for file in part.files)


def test_make_test_and_make_test_all_together_run_every_file_once() -> None:
    assert files(Share.MAIN) + files(Share.REST) == Counter(every_file())
    assert set(every_file()) == {
        file
        for file in TESTS.rglob("test_*.py")
        if file.relative_to(TESTS).parts[0] not in SEPARATE
    }


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
