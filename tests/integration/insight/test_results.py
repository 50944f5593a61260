"""Results of all jobs equal those of DuckDB and plain Python, on random histories."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from shoal.core.runs.why.fingerprints import fingerprint
from shoal.insight.jobs.catalogue import JOBS, chosen
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.run import JobsRequest, StepDone, run
from shoal.insight.serving.blocks import blocks_of, table_of
from shoal.insight.serving.results import RESULTS
from tests.integration.insight.expected import Expected
from tests.integration.insight.histories import CLUSTER, FIRST, Generator, History
from tests.integration.insight.results import assert_same, stored

LAST = FIRST + timedelta(days=6)
ALL_DAYS = Days(FIRST, LAST)


@dataclass(frozen=True)
class Computed:
    """A history and what the jobs have made of it."""

    history: Path
    out: Path
    expected: Expected
    done: list[StepDone]


def computed(history: Path, out: Path, days: Days, *names: str) -> list[StepDone]:
    jobs = chosen(names or None)
    return list(run(JobsRequest(str(history), str(out), days, jobs, master="local[2]")))


@pytest.fixture(scope="module", params=[1, 2], ids=["seed 1", "seed 2"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Computed:
    root = tmp_path_factory.mktemp("insight")
    Generator(History(root / CLUSTER), request.param).write()
    done = computed(root / CLUSTER, root / "out", ALL_DAYS)
    return Computed(root / CLUSTER, root / "out", Expected(root / CLUSTER, FIRST, LAST), done)


@pytest.mark.parametrize("job", [job for job in JOBS if job not in {"failures", "schedule_moves"}])
def test_result_is_that_of_a_second_computation(case: Computed, job: str) -> None:
    assert_same(stored(case.out, job), getattr(case.expected, job)())


def test_failures_are_those_of_a_second_computation(case: Computed) -> None:
    assert_same(stored(case.out, "failures"), case.expected.failures(fingerprint))


def test_moves_of_schedules_do_to_the_fullest_minute_what_they_say(case: Computed) -> None:
    load: Counter[int] = Counter()
    fires = case.expected.fires()
    for of in fires.values():
        for minute, starts in of.items():
            load[minute] += starts  # type: ignore[assignment]
    found = sorted(stored(case.out, "schedule_moves"), key=lambda row: row["place"])
    assert found
    for row in found:
        assert row["highest_before"] == pytest.approx(max(load.values()))
        full = load[row["minute"]]
        mine = fires[row["schedule_id"]]
        assert row["starts_per_day"] == pytest.approx(sum(mine.values()))
        for minute, starts in mine.items():
            load[minute] -= starts  # type: ignore[assignment]
        for minute, starts in mine.items():
            load[(minute + row["move_min"]) % 1440] += starts  # type: ignore[assignment]
        assert load[row["minute"]] < full
        assert row["highest_after"] == pytest.approx(max(load.values()))
        assert row["highest_after"] <= row["highest_before"] + 1e-9


def test_every_day_has_a_file_even_without_rows(case: Computed) -> None:
    assert {done.job for done in case.done} == {"prepare", *JOBS}
    for name, job in JOBS.items():
        days = job.days(ALL_DAYS)
        files = [case.out / name / f"day={day}" / "rows.parquet" for day in days]
        assert sorted(case.out.glob(f"{name}/*/*")) == files
    assert not [row for row in stored(case.out, "task_days") if row["day"] == LAST + timedelta(1)]


def test_results_that_are_served_have_the_columns_that_are_loaded(case: Computed) -> None:
    assert {name for name, job in JOBS.items() if job.is_served} == set(RESULTS)
    for name, result in RESULTS.items():
        assert result.is_snapshot == JOBS[name].is_snapshot
        rows = stored(case.out, name)
        blocks = []
        for file in sorted(case.out.glob(f"{name}/*/rows.parquet")):
            blocks += list(blocks_of(result, table_of(result, file.read_bytes())))
        assert rows
        counts = [len(json.loads(block.body)) - 1 for block in blocks if block.place >= 0]
        assert sum(counts) == len(rows)


def test_running_again_or_for_other_days_changes_nothing_else(case: Computed) -> None:
    names = ("task_days", "critical_paths", "baselines")
    before = {name: stored(case.out, name) for name in names}
    day = FIRST + timedelta(days=2)
    computed(case.history, case.out, Days(day, day + timedelta(days=2)), *names)
    for name in names:
        # A snapshot of another day stands beside the one that was there.
        if JOBS[name].is_snapshot:
            mine = [row for row in stored(case.out, name) if row["day"] == LAST]
        else:
            mine = stored(case.out, name)
        assert_same(mine, before[name])


def test_one_day_by_itself_has_the_same_results(case: Computed, tmp_path: Path) -> None:
    # Of the days around it fewer columns are read.
    day = FIRST + timedelta(days=4)
    computed(case.history, tmp_path / "out", Days(day, day))
    expected = Expected(case.history, day, day)
    for job in JOBS.keys() - {"failures", "schedule_moves"}:
        assert_same(stored(tmp_path / "out", job), getattr(expected, job)())
    assert_same(stored(tmp_path / "out", "failures"), expected.failures(fingerprint))


def test_late_row_changes_its_own_day_alone(tmp_path: Path) -> None:
    history = History(tmp_path / CLUSTER)
    generator = Generator(history, 3, runs=30)
    generator.write()
    out = tmp_path / "out"
    computed(tmp_path / CLUSTER, out, ALL_DAYS, "task_days")
    before = stored(out, "task_days")
    late = generator.late(day=1)
    computed(tmp_path / CLUSTER, out, Days(late, late), "task_days")
    after = stored(out, "task_days")
    assert [row for row in after if row["day"] != late] == [
        row for row in before if row["day"] != late
    ]
    assert_same(after, Expected(tmp_path / CLUSTER, FIRST, LAST).task_days())
    assert after != before


def test_days_without_rows_have_empty_results(tmp_path: Path) -> None:
    Generator(History(tmp_path / CLUSTER), 4, runs=5).write()
    before = FIRST - timedelta(days=90)
    done = computed(tmp_path / CLUSTER, tmp_path / "out", Days(before, before))
    assert {one.job: one.rows for one in done} == {"prepare": 0, **dict.fromkeys(JOBS, 0)}
    assert len(list((tmp_path / "out").glob("*/day=*/rows.parquet"))) == len(JOBS)
