"""A long run of the fault suite in parts."""

from pathlib import Path

import pytest

from tests.chaos.parts import FAULTS, Result, load, merge, split, store
from tests.chaos.plan import Outcome
from tests.chaos.records import FaultRecord
from tests.chaos.verdict import Kind, Offence, Verdict

RECORD = FaultRecord(
    "freeze-worker", "worker-1", 1.0, 2.0, None, True, "asleep", frozen_pids=frozenset({7, 8})
)
FOUND = Result(
    Verdict([Offence(Kind.LOST, "rule", "text", 3, "a", 1)], {"instances": 4}, {"s": [0.5]}),
    Outcome([RECORD], ["a: skipped"], ["never whole"]),
    ["master-1 ended"],
    ["pid 9"],
    [3],
    60.0,
    "abc",
)
CLEAN = Result(Verdict([], {"instances": 6, "attempts": 0}, {"s": [1.5]}), Outcome(), commit="def")


@pytest.mark.parametrize("faults", [0, 1, FAULTS, FAULTS + 1, 1000])
def test_parts_share_all_faults_evenly(faults: int) -> None:
    parts = split(5, faults)
    sizes = [part.faults for part in parts]
    assert sum(sizes) == faults
    assert max(sizes) <= FAULTS
    assert max(sizes) - min(sizes) <= 1
    assert [part.seed for part in parts] == list(range(5, 5 + len(parts)))


def test_short_run_is_one_part_with_the_seed_that_was_asked_for() -> None:
    assert [(part.seed, part.faults) for part in split(4711, 45)] == [(4711, 45)]


def test_result_is_found_again_as_it_was(tmp_path: Path) -> None:
    file = split(5, 1000)[3].file(tmp_path / "new")
    assert load(file) is None
    store(file, FOUND)
    assert load(file) == FOUND
    assert [file] == list(file.parent.iterdir())


def test_everything_that_a_part_found_is_in_the_whole() -> None:
    whole = merge([CLEAN, FOUND])
    assert not whole.is_clean
    assert whole.verdict.offences == FOUND.verdict.offences
    assert whole.verdict.counts == {"instances": 10, "attempts": 0}
    assert whole.verdict.samples == {"s": [1.5, 0.5]}
    assert whole.outcome.records == [RECORD]
    assert whole.outcome.skipped == ["part 2: a: skipped"]
    assert whole.outcome.trouble == ["part 2: never whole"]
    assert whole.exits == ["part 2: master-1 ended"]
    assert whole.leftovers == ["part 2: pid 9"]
    assert whole.open_instances == [3]
    assert (whole.duration_s, whole.commit) == (60.0, "abc, def")


def test_clean_parts_are_clean_together() -> None:
    assert merge([CLEAN, CLEAN]).is_clean
