"""What comes after its day was computed: the day is computed again, and no other one."""

import io
from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from shoal.insight.export.compaction import Compaction, joined
from shoal.insight.history.manifest import HistoryFile as Exported
from shoal.insight.history.manifest import Manifest
from shoal.insight.history.store import HistoryStore
from shoal.insight.history.tables import ATTEMPTS, TABLES
from shoal.insight.jobs.catalogue import JOBS, chosen
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.errors import BadDays
from shoal.insight.jobs.late_rows import ChangedDays, Look, changed_days, divided, ranges, work_of
from shoal.insight.jobs.run import JobsRequest, run_with_late
from shoal.insight.jobs.source import manifested
from tests.integration.insight.expected import Expected
from tests.integration.insight.histories import CLUSTER, FIRST, Generator, History, Row
from tests.integration.insight.results import assert_same, stored

LAST = FIRST + timedelta(days=6)
ALL_DAYS = Days(FIRST, LAST)
DAILY = [name for name, job in JOBS.items() if not job.is_snapshot]
OF_DAYS = [name for name, job in JOBS.items() if not job.is_snapshot and name != "failures"]


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def computed(root: Path, days: Days, *names: str) -> set[str]:
    """Compute with ``--late``; return the ranges of days that were."""
    jobs = chosen(names)
    request = JobsRequest(str(root), str(root / "rollups"), days, jobs, master="local[2]")
    return {done.days for done in run_with_late(request)}


def test_all_days_are_right_after_late_and_superseded_rows(tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    Generator(History(root), 2, runs=80).write()
    *_, last = sorted((root / "manifest").iterdir())
    content = last.read_text()
    last.unlink()  # the export of what came late, and of what was run again
    assert computed(root, ALL_DAYS, *OF_DAYS) == {str(ALL_DAYS)}
    before = {name: stored(root / "rollups", name) for name in OF_DAYS}
    last.write_text(content)
    computed(root, Days(LAST, LAST), *OF_DAYS)
    expected = Expected(root, FIRST, LAST)
    for name in OF_DAYS:
        assert_same(stored(root / "rollups", name), getattr(expected, name)())
        assert stored(root / "rollups", name) != before[name]
    assert computed(root, Days(LAST, LAST), "task_days") == {f"{LAST}:{LAST}"}


def test_days_that_are_late_or_were_never_asked_for_are_computed_and_no_others(
    tmp_path: Path,
) -> None:
    root = tmp_path / CLUSTER
    generator = Generator(History(root), 3, runs=30)
    generator.write()
    assert computed(root, Days(day(4), day(4)), "task_days") == {f"{day(4)}:{day(4)}"}
    # The days behind the last one that was asked for have not been computed either.
    assert computed(root, Days(LAST, LAST), "task_days") == {f"{day(5)}:{LAST}"}
    generator.late(day=1)
    older = f"{day(2)}:{day(2)}"
    assert computed(root, Days(day(2), day(2)), "task_days") == {older}, "it looks at nothing"
    assert computed(root, Days(LAST, LAST), "task_days") == {
        f"{day(1)}:{day(1)}",
        f"{LAST}:{LAST}",
    }
    assert computed(root, Days(LAST, LAST), "task_days") == {f"{LAST}:{LAST}"}
    generator.late(day=1)
    computed_days = computed(root, Days(LAST, LAST), "failures")
    assert computed_days == {f"{LAST}:{LAST}"}, "it has never looked before"
    generator.late(day=2)
    computed_days = computed(root, Days(LAST, LAST), "failures", "task_days")
    assert computed_days == {f"{day(1)}:{LAST}"}, "failures of a day count in those behind it"


def test_joined_files_are_late_only_if_something_in_them_is(tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    generator = Generator(History(root), 4, runs=30)
    generator.write()
    look = Look.now(manifested(str(root)), LAST)
    join(root, 1)
    assert changed(root, look) == set()
    for number in range(2):
        generator.late(day=number)
    join(root, 1)
    assert changed(root, look) == {day(0), day(1)}
    look = Look.now(manifested(str(root)), LAST)
    assert changed(root, look) <= {day(1)}


def test_rows_that_a_late_one_was_joined_with_do_not_count(tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    history = History(root)
    generator = Generator(history, 6, runs=30)
    generator.write()
    history.export({ATTEMPTS: [ran(history, 1, day(1), day(4)), ran(history, 2, LAST, LAST)]})
    look = Look.now(manifested(str(root)), LAST)
    generator.late(day=4)
    join(root, 4)
    assert changed(root, look) == {day(4)}
    history.export({ATTEMPTS: [ran(history, 3, day(3), day(4))]})
    join(root, 4)
    assert changed(root, look) == {day(3), day(4)}


def test_days_that_have_not_begun_are_refused() -> None:
    assert Days.parse(f"{FIRST}:{LAST}", LAST) == ALL_DAYS
    with pytest.raises(BadDays, match=f"{LAST} has not begun"):
        Days.parse(f"{FIRST}:{LAST}", LAST - timedelta(days=1))


def test_look_of_a_day_to_come_keeps_nothing_from_being_looked_at(tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    Generator(History(root), 4, runs=30).write()
    files, far = manifested(str(root)), date.today() + timedelta(days=900)
    place = root / "rollups/task_days/looked.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(Look.now(files, far).to_json())
    work = work_of(files, str(root / "rollups"), chosen(["task_days"]), Days(LAST, LAST))
    assert work.look == Look.now(files, LAST)


def test_days_long_ago_stay_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    generator = Generator(History(root), 5, runs=10)
    generator.write()
    look = Look(0, 0, day(60))
    assert changed(root, look, Days(day(60), day(60))) == set()
    found = changed(root, look, Days(day(35), day(35)))
    assert found
    assert min(found) == day(4)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ([], ["9:9"]),
        ([8], ["8:9"]),
        ([0, 1, 9], ["0:1", "9:9"]),
        ([0, 2, 5, 8, 10], ["0:9"]),
    ],
)
def test_days_that_are_near_to_each_other_are_one_range(
    changed: Collection[int], expected: list[str]
) -> None:
    found = ranges(Days(day(9), day(9)), {day(number) for number in changed})
    assert [f"{(one.first - FIRST).days}:{(one.last - FIRST).days}" for one in found] == expected


def test_each_job_has_the_days_that_its_rows_are_about() -> None:
    """An attempt of two days, of a run of four days, whose other attempts were there before."""
    found = ChangedDays(
        ended={day(3)}, worked={day(2), day(3)}, went_on={day(0), day(1), day(2), day(3)}
    )
    of = {name: {(one - FIRST).days for one in found.of(JOBS[name])} for name in DAILY}
    assert of == {
        "task_days": {3},
        "failures": {3},
        "worker_days": {2, 3},
        "concurrency_hours": {2, 3},
        **{name: {0, 1, 2, 3} for name in ("critical_paths", "critical_days", "workflow_days")},
        "costs": {0, 1, 2, 3},  # the run has its labels now
    }
    names = ("task_days", "worker_days", "costs", "failures")
    jobs = [JOBS[name] for name in names]
    [one] = divided(Days(day(4), day(4)), found, jobs)
    assert one.days == Days(day(0), day(4))
    assert one.by_job == {
        "task_days": Days(day(3), day(4)),
        "worker_days": Days(day(2), day(4)),
        "costs": Days(day(0), day(4)),
        "failures": Days(day(3), day(4)),
    }
    first, last = divided(Days(day(20), day(20)), found, jobs[:3])
    assert (first.days, last.days) == (Days(day(0), day(3)), Days(day(20), day(20)))
    assert first.by_job["task_days"] == Days(day(3), day(3))
    assert set(last.by_job.values()) == {Days(day(20), day(20))}
    # What only runs are about does not matter of attempts; failures count in the days behind them.
    first, last = divided(Days(day(20), day(20)), ChangedDays(went_on={day(2)}), jobs)
    assert first.by_job == {"costs": Days(day(2), day(2))}
    assert last.by_job["failures"] == Days(day(20), day(20))
    [one] = divided(Days(day(20), day(20)), ChangedDays(ended={day(3)}), jobs)
    assert one.by_job["failures"] == Days(day(3), day(20))


def test_jobs_compute_the_days_that_they_need_alone(tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    history = History(root)
    Generator(history, 7, runs=30).write()
    assert computed(root, ALL_DAYS, *OF_DAYS) == {str(ALL_DAYS)}
    assert computed(root, Days(LAST, LAST), *OF_DAYS) == {f"{LAST}:{LAST}"}
    before = {name: stored(root / "rollups", name) for name in OF_DAYS}
    history.export({ATTEMPTS: [ran(history, 1, day(3), day(4))]})
    jobs = chosen(["task_days", "worker_days", "concurrency_hours", "costs"])
    request = JobsRequest(
        str(root), str(root / "rollups"), Days(LAST, LAST), jobs, master="local[2]"
    )
    found = {done.job: done.days for done in run_with_late(request)}
    assert found == {
        "prepare": f"{day(3)}:{LAST}",
        "task_days": f"{day(4)}:{LAST}",
        "worker_days": f"{day(3)}:{LAST}",
        "concurrency_hours": f"{day(3)}:{LAST}",
        "costs": f"{day(4)}:{LAST}",
    }
    expected = Expected(root, FIRST, LAST)
    for name in found.keys() - {"prepare", "costs"}:  # whose model knows no run that goes on
        assert_same(stored(root / "rollups", name), getattr(expected, name)())
    for name in found.keys() - {"prepare"}:
        assert stored(root / "rollups", name) != before[name]


@pytest.mark.parametrize("seed", [5, 11])
def test_a_late_run_of_two_days_is_in_all_results(tmp_path: Path, seed: int) -> None:
    root = tmp_path / CLUSTER
    generator = Generator(History(root), seed, runs=30)
    generator.write()
    computed(root, ALL_DAYS, *OF_DAYS)
    computed(root, Days(LAST, LAST), *OF_DAYS)
    generator.late_crossing()
    request = JobsRequest(
        str(root), str(root / "rollups"), Days(LAST, LAST), chosen(OF_DAYS), master="local[2]"
    )
    assert str(ALL_DAYS) not in {done.days for done in run_with_late(request)}
    expected = Expected(root, FIRST, LAST)
    for name in OF_DAYS:
        assert_same(stored(root / "rollups", name), getattr(expected, name)())


def changed(root: Path, look: Look, asked: Days = ALL_DAYS) -> set[date]:
    """Return all days that rows which have come since a look are about."""
    found = changed_days(manifested(str(root)), look, asked)
    assert set(found.ended) <= set(found.worked)
    return {*found.worked, *found.went_on}


def ran(history: History, number: int, first: date, last: date) -> Row:
    """Return an attempt of a run that nobody knows, which ran from one day to another."""
    noon = time(12, tzinfo=UTC)
    started = datetime.combine(first, noon)
    return {
        "attempt_id": 10**9 + number,
        "instance_id": 10**9 + number,
        "project": "p0",
        "workflow": "w0",
        "version": 1,
        "task": "crossing",
        "type": "SHELL",
        "worker_group": "default",
        "worker": "a",
        "attempt": 1,
        "state": "SUCCEEDED",
        "forced": False,
        "queued_at": started,
        "started_at": started,
        "finished_at": datetime.combine(last, noon),
        "cpu_s": 1.5,
        "max_rss_kb": 1_000,
        "event_id": history.event(),
    }


def join(root: Path, number: int) -> None:
    """Join the files of a day of each table, as the exporter does."""
    store = HistoryStore.at(str(root))
    contents = store.contents()
    for table in TABLES:
        files: list[Exported] = contents.of(table.name, (day(number), day(number)))
        if len(files) < 2:
            continue
        sequence = store.contents().sequence + 1
        rows = joined(store, Compaction(table, day(number), files))
        content = io.BytesIO()
        pq.write_table(rows, content)
        since = min(file.since for file in files)
        file = store.put(
            sequence, table.name, day(number), content.getvalue(), rows.num_rows, since
        )
        replaced = tuple(one.path for one in files)
        store.put_manifest(Manifest(sequence, [file], None, replaced))
