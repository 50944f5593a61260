"""Whether what is there is what a task waits for, and what is said if not."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.worker.types.wait.kind import WaitFileParams
from shoal.worker.types.wait.verdict import Found, WaitVerdict, judge, outputs

NOW = 1_000_000.0


def params(**fields: Any) -> WaitFileParams:
    return WaitFileParams.model_validate({"path": "/in/*.csv", **fields})


def judged(found: list[Found], newer_than: datetime | None = None, **fields: Any) -> WaitVerdict:
    return judge(found, params(**fields), NOW, newer_than)


def file(name: str, size: int = 10, age_s: float = 100.0) -> Found:
    return Found(f"/in/{name}", size, NOW - age_s)


def test_nothing_there() -> None:
    assert judged([]).answer == "/in/*.csv: nothing is there"


def test_one_file_is_enough_by_default() -> None:
    verdict = judged([file("b.csv"), file("a.csv")])
    assert verdict.answer is None
    assert [one.path for one in verdict.good] == ["/in/a.csv", "/in/b.csv"]


def test_so_many_must_fulfil_all_conditions() -> None:
    found = [file("a.csv"), file("b.csv", size=1), file("c.csv", size=2)]
    answer = judged(found, at_least=2, min_size=5).answer
    assert answer == (
        "1 of 2 are there; /in/b.csv has 1 bytes, at least 5 are wanted, and 1 more like it"
    )
    assert judged([*found, file("d.csv")], at_least=2, min_size=5).answer is None


def test_file_that_still_changes_is_looked_at_again_when_it_has_rested() -> None:
    verdict = judged([file("a.csv", age_s=20)], stable_for="30s")
    assert verdict.answer == "/in/a.csv was changed 20.0s ago, 30.0s are wanted"
    assert verdict.passes_in_s == 10
    assert judged([file("a.csv", age_s=30)], stable_for="30s").answer is None


def test_rest_of_the_last_file_that_is_needed_counts() -> None:
    found = [file("a.csv", age_s=5), file("b.csv", age_s=20), file("c.csv", age_s=1)]
    assert judged(found, at_least=2, stable_for="30s").passes_in_s == 25
    assert judged(found[:1], at_least=2, stable_for="30s").passes_in_s is None


def test_time_that_is_to_come_is_no_rest() -> None:
    verdict = judged([file("a.csv", age_s=-50)], stable_for="30s")
    assert "which is to come" in (verdict.answer or "")
    assert verdict.passes_in_s is None


def test_only_what_was_changed_after_a_time() -> None:
    moment = datetime.fromtimestamp(NOW - 100, UTC)
    assert "before" in (judged([file("a.csv", age_s=100)], moment).answer or "")
    assert judged([file("a.csv", age_s=99)], moment).answer is None


def test_place_without_times_fulfils_no_condition_on_them() -> None:
    unknown = Found("/in/a.csv", 3, None)
    assert judged([unknown]).answer is None
    assert "does not say when" in (judged([unknown], stable_for="1s").answer or "")


@pytest.mark.parametrize(
    ("what", "is_folder", "enough"),
    [
        ("file", True, False),
        ("file", False, True),
        ("folder", True, True),
        ("folder", False, False),
        ("any", True, True),
    ],
)
def test_files_and_folders(what: str, is_folder: bool, enough: bool) -> None:
    one = Found("/in/x.csv", 1, NOW - 9, is_folder)
    assert (judged([one], what=what).answer is None) == enough


def test_outputs_are_about_all_that_was_found() -> None:
    good = judged([file("a.csv", 3, 50), file("b.csv", 4, 20)]).good
    assert outputs(good) == {
        "file": "/in/a.csv",
        "size": 7,
        "count": 2,
        "files": ["/in/a.csv", "/in/b.csv"],
        "mtime": "1970-01-12T13:46:20+00:00",
    }
