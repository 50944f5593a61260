"""A long run is divided into parts, and its verdict has the offences of all of them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.chaos.judging.verdict import Kind, Offence, Verdict
from tests.chaos.plan import Outcome
from tests.chaos.records import FaultRecord
from tests.chaos.reports.parts import FAULTS, Part, Result, load, merge, shared, split, store
from tests.support.waiting import DEADLINE_S

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


def test_two_processes_share_the_parts_and_have_the_results_of_all(tmp_path: Path) -> None:
    parts = split(5, 3 * FAULTS)
    judged: list[int] = []
    both = threading.Barrier(2)

    def judge(part: Part) -> Result:
        file = part.file(tmp_path)
        if done := load(file):
            return done
        judged.append(part.number)
        if len(judged) <= 2:
            both.wait(DEADLINE_S)  # each of them has one
        store(file, CLEAN)
        return CLEAN

    with ThreadPoolExecutor(2) as pool:
        first, second = [pool.submit(shared, parts, tmp_path, judge) for _ in range(2)]
        assert first.result(DEADLINE_S) == second.result(DEADLINE_S) == [CLEAN] * 3
    assert sorted(judged) == [1, 2, 3]
