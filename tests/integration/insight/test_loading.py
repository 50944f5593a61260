"""Results get into the database as a whole, whatever happens to those who load them."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text, update

from shoal.core.insight.aggregates import COSTS, RUN_DAYS, TASK_DAYS, Aggregation
from shoal.core.runs.quarantine import ItemConsumer, QuarantinedItem
from shoal.insight.history.store import HistoryStore
from shoal.insight.serving.loader import Loader, LoadSummary
from shoal.insight.serving.results import RESULTS, ValueKind
from shoal.insight.serving.store import ResultStore
from shoal.runtime import failpoints
from shoal.runtime.storage import Storage, StorageError
from shoal.sql import Database
from shoal.sql.schema.tables import rollup, rollup_batch, rollup_day
from tests.integration.insight.made import NOON, Row, mark, parquet, put, row
from tests.integration.sql.given import NOW

TODAY = date.today()
DAY = TODAY - timedelta(days=1)


@pytest.fixture
def root(store: HistoryStore) -> Path:
    """The folder of results."""
    return Path(store.results)


async def load(database: Database, store: HistoryStore, **more: Any) -> LoadSummary:
    """Load what is new; ``more`` is for the loader, or ``is_all``."""
    is_all = more.pop("is_all", False)
    return await Loader(database, ResultStore(store), **more).run(is_all=is_all)


async def served(database: Database, job: str, day: date = DAY) -> list[Row]:
    """Return the rows of a result as readers see them, with their project and workflow."""
    async with database.unit_of_work(read_only=True) as uow:
        if not RESULTS[job].has_project:
            blocks = await uow.rollups.of_cluster(job, day, day)
            return [dict(one) for block in blocks for one in block.rows]
        return [
            {"project": block.project, "workflow": block.workflow, **one}
            for block in await uow.rollups.blocks(job, day, day, None)
            for one in block.rows
        ]


async def counted(database: Database) -> dict[str, int]:
    """Return how many rows each table has, and how many blocks are of no batch that is known.

    Of ``rollup`` without aggregates, which orphans may be as well.
    """
    orphans = select(func.count()).where(
        rollup.c.batch.not_in(select(rollup_day.c.batch)),
        rollup.c.batch.not_in(select(rollup_batch.c.id)),
    )
    async with database.unit_of_work(read_only=True) as uow:
        found = {
            table.name: await uow.connection.scalar(select(func.count()).select_from(table))
            for table in (rollup_day, rollup_batch)
        }
        blocks = select(func.count()).select_from(rollup).where(rollup.c.place >= 0)
        found[rollup.name] = await uow.connection.scalar(blocks)
        return found | {"orphans": await uow.connection.scalar(orphans)}


async def test_rows_arrive_as_they_are(database: Database, store: HistoryStore, root: Path) -> None:
    results = []
    for job in RESULTS:
        rows = [row(job), row(job)]
        if RESULTS[job].has_project:
            rows = [
                row(job, project=p, workflow=w) for p, w in (("b", "w"), ("a", "ü"), ("b", "w"))
            ]
        results.append(put(root, job, DAY, parquet(job, rows)))
    place = mark(root, *results)
    done = await load(database, store)
    assert (done.loaded, done.refused) == (len(RESULTS), [])
    assert not place.exists()
    for job, result in RESULTS.items():
        found = await served(database, job)
        expected = {
            name: value if not isinstance(value, date) else value.isoformat()
            for name, value in row(job).items()
        }
        for name, value in expected.items():
            if isinstance(value, str) and value.startswith("2026-03-01T"):
                expected[name] = "2026-03-01T12:00:00Z"
        if result.has_project:
            expected |= {"project": "a", "workflow": "ü"}
            assert [one["project"] for one in found] == ["a", "b", "b"]
        assert found[0] == expected
    assert (await counted(database))["rollup_batch"] == 0


async def test_what_is_unusual_in_a_row_is_kept(
    database: Database, store: HistoryStore, root: Path
) -> None:
    name = "w" * 100
    odd = row("task_days", workflow=name, task='"<\\ü\n', duration_p50=None, busy_s=float("nan"))
    mark(root, put(root, "task_days", DAY, parquet("task_days", [odd])))
    await load(database, store)
    [found] = await served(database, "task_days")
    assert (found["task"], found["duration_p50"], found["busy_s"]) == ('"<\\ü\n', None, None)


async def test_days_without_rows_and_large_workflows(
    database: Database, store: HistoryStore, root: Path
) -> None:
    many = [row("costs", workflow="w", task=f"t{n:05}", value="x" * 200) for n in range(5_000)]
    mark(
        root,
        put(root, "costs", DAY, parquet("costs", many)),
        put(root, "failures", DAY, parquet("failures", [])),
    )
    done = await load(database, store)
    assert (done.loaded, done.rows) == (2, 5_000)
    assert [one["task"] for one in await served(database, "costs")] == [one["task"] for one in many]
    async with database.unit_of_work(read_only=True) as uow:
        longest = await uow.connection.scalar(select(func.max(func.length(rollup.c.body))))
        [empty] = await uow.rollups.days("failures")
    assert 100_000 < longest <= 257_000
    assert empty.rows == 0


async def test_only_what_has_changed_is_loaded(
    database: Database, store: HistoryStore, root: Path
) -> None:
    first = parquet("costs", [row("costs", task="old")])
    mark(root, put(root, "costs", DAY, first))
    assert (await load(database, store)).loaded == 1
    mark(root, put(root, "costs", DAY, first))
    assert (await load(database, store)).loaded == 0
    assert (await load(database, store, is_all=True)).loaded == 0
    changed = put(root, "costs", DAY, parquet("costs", [row("costs", task="new")]))
    assert (await load(database, store)).loaded == 0, "its run has not ended"
    mark(root, changed)
    assert (await load(database, store)).loaded == 1
    assert [one["task"] for one in await served(database, "costs")] == ["new"]
    assert await counted(database) == {
        "rollup_day": 1,
        "rollup_batch": 0,
        "rollup": 1,
        "orphans": 0,
    }


async def aggregated(database: Database, of: Aggregation[Any]) -> dict[Any, Any] | None:
    """Return the aggregates of a result; None: there are none."""
    async with database.unit_of_work(read_only=True) as uow:
        parts = await uow.rollups.aggregates(of.job, DAY)
    return None if parts is None else of.values(parts)


def measured(chance: random.Random, job: str, workflow: str, task: str) -> Row:
    """Return a row that was measured, more or less."""
    found = row(job, project="p", workflow=workflow)
    for name, kind in RESULTS[job].columns.items():
        if kind is ValueKind.INTEGER and name != "max_rss_kb":
            found[name] = chance.randrange(10**6)
        elif kind in (ValueKind.NUMBER, ValueKind.INTEGER):
            found[name] = chance.choice([None, 0, 7])
            if kind is ValueKind.NUMBER:
                found[name] = chance.choice([None, 0.0, chance.lognormvariate(0, 9), float("nan")])
        elif name == "task":
            found[name] = task
        elif name == "label":
            found[name] = chance.choice(["", "team", "ü"])
        elif name == "value":
            found[name] = f"{chance.randrange(400):0200}" if found["label"] else ""
    return found


@pytest.mark.parametrize("seed", range(3))
async def test_aggregates_are_those_of_the_rows(
    database: Database, store: HistoryStore, root: Path, seed: int
) -> None:
    chance = random.Random(seed)
    some = [f"w{number}" for number in range(chance.choice([1, 30, 900]))]
    results = []
    for of in (RUN_DAYS, TASK_DAYS, COSTS):
        tasks = ["t"] if of is RUN_DAYS else [f"t{number}" for number in range(6)]
        rows = [measured(chance, of.job, workflow, task) for workflow in some for task in tasks]
        results.append(put(root, of.job, DAY, parquet(of.job, rows)))
    mark(root, *results)
    assert (await load(database, store)).refused == []
    for of in (RUN_DAYS, TASK_DAYS, COSTS):
        async with database.unit_of_work(read_only=True) as uow:
            blocks = await uow.rollups.blocks(of.job, DAY, DAY, None)
        assert len(blocks) == len(some)
        expected = {(one.project, one.workflow): of.of(one.rows) for one in blocks}
        found = await aggregated(database, of)
        assert found == expected
        assert [*found] == [*expected], "sums of numbers depend on their order"


async def test_a_result_of_which_a_count_is_missing_has_no_aggregates(
    database: Database, store: HistoryStore, root: Path
) -> None:
    rows = [row("task_days", workflow="w"), row("task_days", workflow="x", attempts=None)]
    mark(root, put(root, "task_days", DAY, parquet("task_days", rows)))
    mark(root, put(root, "costs", DAY, parquet("costs", [])))
    assert (await load(database, store)).refused == []
    assert len(await served(database, "task_days")) == 2
    assert await aggregated(database, TASK_DAYS) is None
    assert await aggregated(database, COSTS) == {}
    # It is not loaded again for that.
    assert (await load(database, store, is_all=True)).loaded == 0


async def test_a_database_that_lost_roll_ups_gets_them_again(
    database: Database, store: HistoryStore, root: Path
) -> None:
    mark(root, *(put(root, job, DAY, parquet(job, [row(job)])) for job in ("costs", "flapping")))
    await load(database, store)
    async with database.unit_of_work() as uow:  # as after the restore of an older one
        await uow.connection.execute(text("DELETE FROM rollup_day WHERE job = 'costs'"))
        await uow.connection.execute(text("UPDATE rollup_day SET digest = 'old'"))
        await uow.commit()
    assert (await load(database, store)).loaded == 1
    assert (await load(database, store, is_all=True)).loaded == 1


def broken(content: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield files that must not be loaded, and what is said of them."""
    yield content[:-9], "the file is damaged"
    yield b"", "the file is damaged"
    middle = len(content) // 4
    yield content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :], "damaged"
    yield parquet("flapping", [row("flapping")]), "other columns (attempts is missing"
    yield parquet("costs", [row("costs", project=None)]), "column project has rows"
    yield parquet("costs", [row("costs", project="")]), "column project has rows"
    yield parquet("costs", [row("costs", workflow="w" * 101)]), "column workflow has rows"


async def test_file_that_is_no_result_is_refused_and_the_old_day_stays(
    database: Database, store: HistoryStore, root: Path
) -> None:
    good = parquet("costs", [row("costs", task=f"t{number}") for number in range(50)])
    mark(root, put(root, "costs", DAY, good))
    await load(database, store)
    before = await served(database, "costs")
    for content, says in broken(good):
        mark(
            root,
            put(root, "costs", DAY, content),
            put(root, "flapping", DAY, parquet("flapping", [])),
        )
        done = await load(database, store)
        [why] = done.refused
        assert says in why
        assert f"{root}/costs/day={DAY}/rows.parquet" in why
        assert "the roll-ups that were there stay" in why
        assert await served(database, "costs") == before
        [item] = await quarantined(database)
        assert item.item == f"costs {DAY}"
        assert says in item.reason
    assert item.tries == len(list(broken(good)))
    assert (await counted(database))["orphans"] == 0
    mark(root, put(root, "costs", DAY, parquet("costs", [row("costs")])))
    assert (await load(database, store)).loaded == 1
    assert await quarantined(database) == []


async def test_a_result_whose_retry_was_requested_is_loaded_without_a_mark(
    database: Database, store: HistoryStore, root: Path
) -> None:
    good = parquet("costs", [row("costs", task="new")])
    mark(root, put(root, "costs", DAY, good))
    put(root, "costs", DAY, b"damaged")
    assert len((await load(database, store)).refused) == 1
    (root / "finished" / f"{1:016}-00000000.json").write_text("{}")
    assert len((await load(database, store)).refused) == 2, "no day of this job is known yet"
    put(root, "costs", DAY, good)
    assert len(await quarantined(database, is_retried=True)) == 2
    done = await load(database, store)
    assert (done.loaded, done.refused) == (1, [])
    assert await quarantined(database) == [], "a mark that is gone can not be tried again"


async def quarantined(database: Database, *, is_retried: bool = False) -> list[QuarantinedItem]:
    """Return what is quarantined; ``is_retried``: request a retry of all of it."""
    async with database.unit_of_work() as uow:
        found = await uow.quarantine.list(consumer=ItemConsumer.HISTORY)
        for one in found if is_retried else ():
            await uow.quarantine.request_retry(one.kind, one.item, one.consumer, NOW)
        await uow.commit()
    return found


async def test_file_that_is_not_what_its_run_has_stored_is_refused(
    database: Database, store: HistoryStore, root: Path
) -> None:
    mark(root, put(root, "costs", DAY, parquet("costs", [row("costs", task="old")])))
    await load(database, store)
    mark(root, put(root, "costs", DAY, parquet("costs", [row("costs", task="new")])))
    put(root, "costs", DAY, parquet("costs", [row("costs", task="later")]))
    [why] = (await load(database, store)).refused
    assert "it was damaged, or is being replaced" in why
    assert [one["task"] for one in await served(database, "costs")] == ["old"]


async def test_marks_that_cannot_be_read_and_unknown_jobs_are_told(
    database: Database, store: HistoryStore, root: Path
) -> None:
    known = put(root, "costs", DAY, parquet("costs", [row("costs")]))
    other = put(root, "weather", DAY, b"?")
    mark(root, known, other)
    half = mark(root)
    half.write_text("{")
    for name, content in ((f"{1:016}", "{}"), (f"{2:016}", '{"format": 2, "results": []}')):
        half.with_name(f"{name}-00000000.json").write_text(content)
    done = await load(database, store)
    assert done.loaded == 1
    assert sorted("finished" in why for why in done.refused) == [False, True, True]
    assert any("a newer version of Shoal has run it" in why for why in done.refused)
    assert (await load(database, store)).refused == []
    assert half.exists(), "it may be complete in a moment"


async def test_old_days_go_from_the_database_and_the_storage(
    database: Database, store: HistoryStore, root: Path
) -> None:
    days = [TODAY - timedelta(days=number) for number in (1, 3, 9, 30)]
    for job in ("costs", "baselines"):
        mark(root, *(put(root, job, day, parquet(job, [row(job)])) for day in days))
    put(root, "critical_paths", days[-1], b"")
    done = await load(database, store)
    assert done.loaded == 4 + 2, "of snapshots seven days stay"
    done = await load(database, store, keep_days=5)
    assert done.forgotten == 2
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.rollups.days()
    assert {(one.job, one.day) for one in found} == {
        (job, day) for job in ("costs", "baselines") for day in days[:2]
    }
    for job in ("costs", "baselines"):
        assert {one.name for one in (root / job).iterdir()} == {f"day={day}" for day in days[:2]}
    assert not list((root / "critical_paths").iterdir())
    assert (await counted(database))["rollup"] == 4
    done = await load(database, store, keep_days=5)
    assert (done.loaded, done.forgotten) == (0, 0)


async def test_results_of_days_to_come_go_and_hide_nothing(
    database: Database, store: HistoryStore, root: Path
) -> None:
    far = TODAY + timedelta(days=900)
    usual = put(root, "baselines", DAY, parquet("baselines", [row("baselines")]))
    mark(root, usual)
    await load(database, store)
    put(root, "task_days", far, parquet("task_days", [row("task_days")]))
    mark(root, put(root, "baselines", far, parquet("baselines", [])))
    assert (await load(database, store)).loaded == 0
    async with database.unit_of_work(read_only=True) as uow:
        assert [one.day for one in await uow.rollups.days()] == [DAY]
    assert (root / f"baselines/day={DAY}/rows.parquet").exists()


@pytest.mark.parametrize("is_loaded", [True, False])
async def test_a_clock_that_was_set_back_takes_nothing_away(
    database: Database,
    store: HistoryStore,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_loaded: bool,
) -> None:
    jobs = ("baselines", "task_days")
    mark(root, *(put(root, job, DAY, parquet(job, [row(job)])) for job in jobs))
    if is_loaded:
        await load(database, store)

    async def long_ago(_: Loader) -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC)

    with monkeypatch.context() as back:
        back.setattr(Loader, "_now", long_ago)
        assert (await load(database, store)).forgotten == 0
    for job in jobs:
        assert (root / f"{job}/day={DAY}/rows.parquet").exists()
    await load(database, store)
    async with database.unit_of_work(read_only=True) as uow:
        assert sorted(one.job for one in await uow.rollups.days()) == [*jobs]


async def test_storage_that_is_away_is_an_error_and_changes_nothing(
    database: Database, store: HistoryStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = mark(root, put(root, "costs", DAY, parquet("costs", [row("costs")])))

    def away(self: Storage, name: str, start: int, end: int) -> bytes:
        raise StorageError(self, f"read {name}", "away")

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "read_range", away)
        with pytest.raises(StorageError, match="setting history_url"):
            await load(database, store)
    assert place.exists()
    assert (await load(database, store)).loaded == 1


async def test_two_loaders_at_once_load_the_same_once(
    database: Database, store: HistoryStore, root: Path
) -> None:
    jobs = ("costs", "flapping", "task_days", "capacity")
    for step in range(4):
        rows = {
            job: [
                row(job, **({"workflow": f"w{n}"} if RESULTS[job].has_project else {}))
                for n in range(30 + step)
            ]
            for job in jobs
        }
        mark(root, *(put(root, job, DAY, parquet(job, rows[job])) for job in jobs))
        done = await asyncio.gather(*(load(database, store) for _ in range(3)))
        assert sum(one.loaded for one in done) == len(jobs)
        for job in jobs:
            assert len(await served(database, job)) == 30 + step
    assert await counted(database) == {
        "rollup_day": 4,
        "rollup_batch": 0,
        "rollup": 3 * 33 + 1,
        "orphans": 0,
    }


@pytest.mark.parametrize("has_old", [False, True])
async def test_loader_that_has_read_an_older_file_does_not_hide_a_newer_one(
    database: Database,
    store: HistoryStore,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_old: bool,
) -> None:
    if has_old:
        mark(root, put(root, "costs", DAY, parquet("costs", [row("costs", task="oldest")])))
        await load(database, store)
    mark(root, put(root, "costs", DAY, parquet("costs", [row("costs", task="older")])))
    loop, result = asyncio.get_running_loop(), ResultStore.result
    overtakes = iter([True])

    def overtaken(self: ResultStore, job: str, day: date) -> bytes:
        """Read the file; then another one comes, and another loader loads it."""
        content = result(self, job, day)
        if next(overtakes, False):
            mark(root, put(root, "costs", DAY, parquet("costs", [row("costs", task="newer")])))
            done = asyncio.run_coroutine_threadsafe(load(database, store), loop).result()
            assert done.loaded == 1
        return content

    monkeypatch.setattr(ResultStore, "result", overtaken)
    done = await load(database, store)
    assert (done.loaded, done.refused) == (0, [])
    assert [one["task"] for one in await served(database, "costs")] == ["newer"]
    found = await counted(database)
    assert found == {"rollup_day": 1, "rollup_batch": 0, "rollup": 1, "orphans": 0}


@pytest.mark.parametrize("point", failpoints.LOAD)
async def test_loader_that_breaks_off_is_made_up_for_by_the_next_one(
    database: Database,
    store: HistoryStore,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    mark(root, put(root, "costs", DAY, parquet("costs", [row("costs", task="old")])))
    await load(database, store)
    mark(root, put(root, "costs", DAY, parquet("costs", [row("costs", task="new")])))
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_armed_points", failpoints.parse(f"{point}=raise"))
        with pytest.raises(failpoints.FailpointReached):
            await load(database, store)
    [found] = await served(database, "costs")
    has_counted = point in ("load.after_publish", "load.before_marks_go", "load.in_removal")
    assert found["task"] == ("new" if has_counted else "old")
    await load(database, store, abandoned_after=timedelta(days=-1))
    [found] = await served(database, "costs")
    assert found["task"] == "new"
    assert not list((root / "finished").iterdir())
    assert await counted(database) == {
        "rollup_day": 1,
        "rollup_batch": 0,
        "rollup": 1,
        "orphans": 0,
    }


@pytest.mark.parametrize("seed", [0, 1])
async def test_kills_leave_the_old_day_or_the_new_one_and_nothing_else(
    url: str,
    database: Database,
    store: HistoryStore,
    root: Path,
    tmp_path: Path,
    seed: int,
) -> None:
    pick = random.Random(seed)
    points = [*failpoints.LOAD]
    if seed == 0:  # each point once
        plan = [f"{name}=kill@1" for name in points]
    else:
        plan = [f"{pick.choice(points)}=kill@{pick.randint(1, 4)}" for _ in range(6)]
    at_once = timedelta(0)  # batches of killed loaders are removed by the next one
    old = await _replaced(database, store, root, 0, is_loaded=True)
    for step, point in enumerate(plan, 1):
        new = await _replaced(database, store, root, step, is_loaded=False)
        code = await asyncio.to_thread(_killed, url, store, tmp_path, point)
        assert code in (0, -9)
        found = {job: await served(database, job) for job in old}
        for job, rows in found.items():
            assert rows in (old[job], new[job]), f"{point}: {job} is neither old nor new"
        assert (await counted(database))["orphans"] == 0
        if code == 0:
            assert found == new
        if pick.random() < 0.5:
            await load(database, store, abandoned_after=at_once)
            assert {job: await served(database, job) for job in old} == new
            found = new
        old = found
    async with database.unit_of_work() as uow:  # so long ago that no writer lives any more
        was_written = rollup_batch.c.touched_at.is_not(None)
        await uow.connection.execute(update(rollup_batch).where(was_written).values(touched_at=NOW))
        await uow.commit()
    await load(database, store, abandoned_after=at_once)
    assert {job: await served(database, job) for job in old} == new
    assert not list((root / "finished").iterdir())
    expected = sum(len({one.get("workflow") for one in rows}) for rows in new.values())
    assert await counted(database) == {
        "rollup_day": len(new),
        "rollup_batch": 0,
        "rollup": expected,
        "orphans": 0,
    }


async def _replaced(
    database: Database, store: HistoryStore, root: Path, step: int, *, is_loaded: bool
) -> dict[str, list[Row]]:
    """Store results of a step; return their rows as readers see them."""
    made = {
        "costs": [
            row("costs", project="p", workflow=f"w{n:03}", attempts=step) for n in range(450)
        ],
        "capacity": [row("capacity", slots=step)],
        "failures": [
            row("failures", project="p", workflow="w", count=step, sample=f"{n}") for n in range(3)
        ],
    }
    mark(root, *(put(root, job, DAY, parquet(job, rows)) for job, rows in made.items()))
    if is_loaded:
        await load(database, store)
        return {job: await served(database, job) for job in made}
    return {
        job: [
            {
                name: NOON.isoformat().replace("+00:00", "Z")
                if value == NOON
                else value.isoformat()
                if isinstance(value, date) and not isinstance(value, datetime)
                else value
                for name, value in one.items()
            }
            for one in rows
        ]
        for job, rows in made.items()
    }


def _killed(url: str, store: HistoryStore, data: Path, point: str) -> int:
    """Run the program with a failpoint; return its exit status."""
    environment = {**os.environ, "SHOAL_DATABASE_URL": url, failpoints.VARIABLE: point}
    argv = [sys.executable, "-m", "shoal.insight.serving.program", "--data", str(data)]
    argv += ["--url", str(Path(store.root).parent), "--share", "0.9"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        assert json.loads(done.stdout)["refused"] == []
    else:
        assert done.returncode == -9, done.stderr
    return done.returncode
