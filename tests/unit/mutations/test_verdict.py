"""Only a test that fails by what it saw counts as having noticed."""

import json
from pathlib import Path

import pytest

from tests.mutations.contained import TIME_IS_UP
from tests.mutations.verdict import Outcome, Verdict, WrongCode, judge, not_passed, read


def outcome(
    test: str = "t.py::test_a", phase: str = "call", outcome: str = "failed", *errors: str
) -> Outcome:
    return Outcome(test, phase, outcome, errors, "")


PASSED = outcome("t.py::test_a", "call", "passed")


@pytest.mark.parametrize(
    ("status", "outcomes", "expected"),
    [
        (1, [PASSED, outcome("t.py::test_b", "call", "failed", "AssertionError")], Verdict.KILLED),
        (1, [outcome("t.py::test_a", "setup", "failed", "Fenced")], Verdict.KILLED),
        (0, [PASSED], Verdict.SURVIVED),
        (0, [], Verdict.BROKEN),
        (2, [outcome("t.py", "collect", "failed")], Verdict.BROKEN),
        (1, [outcome("t.py::test_a", "call", "failed", "NameError")], Verdict.BROKEN),
        (1, [outcome("t.py::test_a", "call", "failed", "Fenced", "TypeError")], Verdict.BROKEN),
        (3, [PASSED], Verdict.BROKEN),
        (TIME_IS_UP, [PASSED], Verdict.HUNG),
        (TIME_IS_UP, [], Verdict.HUNG),
    ],
)
def test_verdicts(status: int, outcomes: list[Outcome], expected: Verdict) -> None:
    assert judge(status, outcomes)[0] is expected


def test_tests_that_did_not_pass_without_a_mutation_are_named() -> None:
    case = outcome("t.py::test_a[1]", "call", "passed")
    skipped = outcome("t.py::test_b[postgresql]", "setup", "skipped")
    assert not_passed(["t.py::test_a"], [PASSED]) == {}
    assert not_passed(["t.py::test_a"], [case]) == {}
    assert not_passed(["t.py::test_a"], [outcome("t.py::test_ab", "call", "passed")])
    bad = not_passed(["t.py::test_a", "t.py::test_b"], [case, skipped])
    assert [*bad] == ["t.py::test_b"]
    assert "skipped" in bad["t.py::test_b"]


def test_report_about_other_code_is_worth_nothing(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert read(report) == []
    report.write_text(json.dumps({"tests": [], "foreign": ["shoal.core.runs.run"]}))
    with pytest.raises(WrongCode, match=r"shoal\.core\.run"):
        read(report)
