"""Everything that has ended is exported once, whatever happens to exporters."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlalchemy import insert, text

from shoal.core.runs.events import Begun, ForceRequested, TaskClaimed, TaskEnded
from shoal.core.runs.quarantine import ItemConsumer, QuarantinedItem
from shoal.core.runs.run import Run
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskSignal
from shoal.insight.export import program as exporting
from shoal.insight.export.exporter import Exporter, ExportSummary, ExportTaken
from shoal.insight.export.extraction import Gathered, Pieces
from shoal.insight.history.manifest import Contents, HistoryFile
from shoal.insight.history.store import DamagedHistory, HistoryStore
from shoal.insight.history.tables import TABLES
from shoal.runtime import failpoints
from shoal.sql import Database
from shoal.sql.schema.tables import takeover
from tests.integration.sql.given import NOW, created, definition, published, stored

KEYS = {table.name: table.key for table in TABLES}
DAY = timedelta(days=1)


def exporter(database: Database, store: HistoryStore, **more: Any) -> Exporter:
    return Exporter(database, store, **more)


async def begun(database: Database, count: int = 1, name: str = "flow", **fields: Any) -> list[Run]:
    """Start instances of a workflow whose tasks a and b do not wait for each other."""
    workflow = await published(database, definition(name=name, **fields))
    runs = await created(database, workflow, count)
    for run in runs:
        await stored(database, run, Begun(NOW))
    return runs


async def end(
    database: Database,
    run: Run,
    task: str,
    signal: TaskSignal = TaskSignal.SUCCEED,
    at: datetime = NOW,
) -> None:
    """Have a worker claim a task and end it."""
    attempt = run.attempts[task].id
    assert attempt is not None
    await stored(database, run, TaskClaimed(attempt, "w", at))
    await stored(database, run, TaskEnded(attempt, signal, at, worker="w", reason="so"))


def rows(store: HistoryStore, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return the valid rows of a table, by the manifests alone."""
    files = [f"{store.root}/{file.path}" for file in store.contents().of(table)]
    if not files:
        return []
    wanted, key = ", ".join(columns), ", ".join(KEYS[table])
    query = f"""
        SELECT {wanted} FROM read_parquet(?, hive_partitioning = false)
        QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY event_id DESC) = 1
        ORDER BY {key}
    """
    return duckdb.connect().execute(query, [files]).fetchall()


async def ended_in(database: Database) -> tuple[list[Any], list[Any]]:
    """Return what the history has to have: attempts and instances that have ended."""
    finals = "('SUCCEEDED', 'FAILED', 'KILLED', 'LOST', 'SKIPPED', 'RESCHEDULED')"
    ends = ", ".join(f"'{state}'" for state in FINISHED_WORKFLOW)
    async with database.unit_of_work(read_only=True) as uow:
        attempts = await uow.connection.rows(
            text(f"SELECT id, state FROM task_instance WHERE state IN {finals} ORDER BY id")
        )
        instances = await uow.connection.rows(
            text(f"SELECT id, state FROM workflow_instance WHERE state IN ({ends}) ORDER BY id")
        )
    return [tuple(one) for one in attempts], [tuple(one) for one in instances]


async def assert_complete(database: Database, store: HistoryStore) -> None:
    attempts, instances = await ended_in(database)
    assert rows(store, "attempts", "attempt_id", "state") == attempts
    found = rows(store, "instances", "instance_id", "state")
    # One that was run again is open now; the history has how it ended before.
    assert [one for one in found if one in instances] == instances


async def test_what_there_was_and_what_comes_later(database: Database, store: HistoryStore) -> None:
    first, second = await begun(database, 2)
    await end(database, first, "a")
    done = await exporter(database, store).run()
    assert done.rows == {"attempts": 1}
    for run, task in ((first, "b"), (second, "a"), (second, "b")):
        await end(database, run, task, at=NOW + DAY)
    done = await exporter(database, store).run()
    assert done.rows["attempts"] == 3
    assert done.rows["instances"] == 2
    await assert_complete(database, store)
    assert (await exporter(database, store).run()).rows == {}
    assert {file.day for file in store.contents().of("attempts")} == {
        NOW.date(),
        (NOW + DAY).date(),
    }


async def test_readers_learn_up_to_when_all_is_there_also_if_nothing_ends(
    database: Database, store: HistoryStore
) -> None:
    first = (await exporter(database, store).run()).settled_until
    assert (await exporter(database, store).run()).settled_until == first
    later = (await exporter(database, store, clock=_in_two_days).run()).settled_until
    assert first is not None
    assert later is not None
    assert later - first > DAY
    assert store.contents().settled_until == later


async def test_columns_say_what_happened(database: Database, store: HistoryStore) -> None:
    [run] = await begun(database, labels={"team": "x"}, tasks={"a": [], "b": ["a"]})
    await end(database, run, "a")
    await end(database, run, "b", TaskSignal.FAIL, NOW + timedelta(seconds=90))
    await exporter(database, store).run()
    names = "project, workflow, version, task, type, worker_group, worker, attempt, state, reason"
    assert rows(store, "attempts", names, "epoch_us(finished_at)")[1] == (
        *("demo", "flow", 1, "b", "SHELL", "default", "w", 1, "FAILED", "so"),
        int((NOW + timedelta(seconds=90)).timestamp() * 1_000_000),
    )
    [(trigger, labels, logical)] = rows(
        store, "instances", "trigger", "labels", "epoch_us(logical_time)"
    )
    assert trigger == "request"
    assert logical == int(NOW.timestamp() * 1_000_000)
    assert labels == {}
    [(tasks,)] = rows(store, "plans", "tasks")
    assert [(task["name"], task["upstream"]) for task in tasks] == [("a", []), ("b", ["a"])]


async def test_an_instance_that_goes_on_later_has_a_newer_row(
    database: Database, store: HistoryStore
) -> None:
    [run] = await begun(database)
    await end(database, run, "a", TaskSignal.FAIL)
    await end(database, run, "b")
    await exporter(database, store).run()
    assert [state for (state,) in rows(store, "attempts", "state")] == ["FAILED", "SUCCEEDED"]
    await stored(database, run, ForceRequested("a", NOW + DAY, "me"))
    await exporter(database, store).run()
    await assert_complete(database, store)
    found = rows(store, "attempts", "task", "attempt", "state", "forced")
    assert found[-1] == ("a", 2, "SUCCEEDED", True)
    assert rows(store, "instances", "state") == [("SUCCEEDED",)]
    assert sum(file.rows for file in store.contents().of("instances")) == 2


async def test_what_has_events_in_several_pieces_is_one_row(
    database: Database, store: HistoryStore
) -> None:
    await exporter(database, store).run()
    runs = await begun(database, 3)
    for run in runs:
        await end(database, run, "a")
        await end(database, run, "b")
    done = await exporter(database, store, pieces=Pieces(rows=2)).run()
    assert done.rows == {"attempts": 6, "instances": 3, "plans": 1}
    await assert_complete(database, store)


async def test_commands_come_when_they_were_handled(
    database: Database, store: HistoryStore
) -> None:
    await begun(database, 3)
    await exporter(database, store).run()
    assert len(rows(store, "commands", "command_id")) == 0  # START commands of tests stay open
    async with database.unit_of_work() as uow:
        at = "now()" if database.kind == "postgresql" else "1"
        await uow.connection.execute(
            text(f"UPDATE command SET state = 'DONE', handled_at = {at} WHERE id <> 2")
        )
        await uow.commit()
    await exporter(database, store).run()
    assert rows(store, "commands", "command_id") == [(1,), (3,)]


async def quarantined(database: Database) -> list[QuarantinedItem]:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.quarantine.list(consumer=ItemConsumer.HISTORY)


async def change(database: Database, statement: str) -> None:
    """Change rows by hand, and request a retry of all that is quarantined."""
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text(statement))
        for one in await uow.quarantine.list(consumer=ItemConsumer.HISTORY):
            await uow.quarantine.request_retry(one.kind, one.item, one.consumer, NOW)
        await uow.commit()


BROKEN = {  # by table: the statement that breaks a row, the one that repairs it, item and reason
    "attempts": (
        "UPDATE task_instance SET exit_code = {junk} WHERE task = 'a'",
        "UPDATE task_instance SET exit_code = 3 WHERE task = 'a'",
        "exit_code is {shown}: not a valid integer",
    ),
    "instances": (
        "UPDATE workflow_instance SET started_at = {never}",
        "UPDATE workflow_instance SET started_at = finished_at",
        "started_at is {number}: not a time of the years 1 to 9999 in microseconds",
    ),
    "commands": (
        "UPDATE command SET state = 'DONE', handled_at = {never}",
        "UPDATE command SET handled_at = created_at",
        "handled_at is {number}: not a time of the years 1 to 9999 in microseconds",
    ),
    "plans": (
        "UPDATE workflow_version SET spec = '[1]'",
        "UPDATE workflow_version SET spec = '{{\"tasks\": []}}'",
        "tasks is missing",
    ),
    "takeovers": (
        "UPDATE takeover SET at = {never}",
        "UPDATE takeover SET at = (SELECT max(created_at) FROM workflow_instance)",
        "at is {number}: not a time of the years 1 to 9999 in microseconds",
    ),
}


@pytest.mark.parametrize("table", BROKEN)
async def test_a_row_that_cannot_be_read_is_quarantined_and_exported_after_its_repair(
    database: Database, store: HistoryStore, table: str
) -> None:
    is_sqlite = database.kind == "sqlite"
    if table == "attempts" and not is_sqlite:
        pytest.skip("PostgreSQL takes no text for a number")
    [run] = await begun(database)
    for task in ("a", "b"):
        await end(database, run, task)
    async with database.unit_of_work() as uow:
        row = {"partition": 1, "epoch": 1, "owner": "m1", "at": NOW}
        await uow.connection.execute(insert(takeover).values(row))
        await uow.commit()
    breaking, repairing, reason = BROKEN[table]
    never, number = (2**62, 2**62) if is_sqlite else ("'infinity'", 2**63 - 1)
    await change(database, breaking.format(junk="'many'", never=never))
    done = await exporter(database, store).run()
    assert (done.left_out, done.rows.get(table, 0)) == ({table: 1}, table == "attempts")
    [item] = await quarantined(database)
    assert item.item.split(" ")[0] == table
    assert item.reason == reason.format(shown="'many'", number=number)
    assert (item.is_skipped, item.tries) == (True, 1)

    await change(database, repairing.format())
    done = await exporter(database, store).run()
    assert (done.left_out, done.rows[table]) == ({}, 1)
    assert await quarantined(database) == []
    await assert_complete(database, store)


async def test_a_row_that_is_exported_after_its_run_went_on_is_no_longer_quarantined(
    database: Database, store: HistoryStore
) -> None:
    [run] = await begun(database)
    await end(database, run, "a", TaskSignal.FAIL)
    await end(database, run, "b")
    never = 2**62 if database.kind == "sqlite" else "'infinity'"
    await change(database, f"UPDATE workflow_instance SET started_at = {never}")
    await exporter(database, store).run()
    assert [one.item for one in await quarantined(database)] == [f"instances {run.id}"]
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text("UPDATE workflow_instance SET started_at = finished_at"))
        await uow.commit()
    await stored(database, run, ForceRequested("a", NOW + DAY, "me"))
    await exporter(database, store).run()
    assert await quarantined(database) == []


async def test_a_quarantined_row_stays_so_with_the_reason_of_its_last_try(
    database: Database, store: HistoryStore
) -> None:
    [run] = await begun(database)
    await end(database, run, "a")
    never = 2**62 if database.kind == "sqlite" else "'infinity'"
    await change(database, f"UPDATE task_instance SET started_at = {never} WHERE task = 'a'")
    await exporter(database, store).run()
    await change(database, "SELECT 1")
    await exporter(database, store).run()
    [item] = await quarantined(database)
    assert (item.tries, item.retry_at) == (2, None)
    await change(database, "DELETE FROM task_instance WHERE task = 'a'")
    await exporter(database, store).run()
    [item] = await quarantined(database)
    assert item.reason == "the row has not ended again, or is no longer in the database"


IMPOSSIBLE = {
    "sqlite": (2**62, -(2**62), 253_402_300_800_000_000, -62_135_596_800_000_001),
    "postgresql": ("'infinity'", "'-infinity'", "'294276-01-01'", "'0044-03-15 BC'"),
}


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("column", ["finished_at", "started_at"])
async def test_a_row_of_an_impossible_time_is_left_out_and_the_others_are_exported(
    database: Database, store: HistoryStore, place: int, column: str
) -> None:
    first, second = await begun(database, 2)
    await end(database, first, "a")
    await end(database, second, "a")
    async with database.unit_of_work() as uow:
        never = IMPOSSIBLE[database.kind][place]
        broken = text(f"UPDATE task_instance SET {column} = {never} WHERE id = :id")
        await uow.connection.execute(broken, {"id": first.attempts["a"].id})
        await uow.commit()
    done = await exporter(database, store).run()
    assert (done.rows["attempts"], done.left_out) == (1, {"attempts": 1})


async def test_what_ended_is_found_although_its_events_were_purged(
    database: Database, store: HistoryStore
) -> None:
    first, second = await begun(database, 2)
    await end(database, first, "a")
    await exporter(database, store).run()
    await end(database, first, "b")
    await end(database, second, "a")
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text("DELETE FROM event"))
        await uow.commit()
    await end(database, second, "b")
    await exporter(database, store).run()
    await assert_complete(database, store)


@pytest.mark.parametrize("is_first", [True, False])
async def test_of_two_exporters_one_comes_too_late(
    database: Database, store: HistoryStore, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    for run in await begun(database, 20):
        await end(database, run, "a")
        await end(database, run, "b")
    if not is_first:
        await exporter(database, store).run()
        for run in await begun(database, 5):
            await end(database, run, "a")
    slow, loop = exporter(database, store, pieces=Pieces(step=10)), asyncio.get_running_loop()
    write = slow._write

    def overtaken(sequence: int, found: Gathered) -> list[HistoryFile]:
        """Write, and let another exporter export all before this one goes on."""
        files = write(sequence, found)
        asyncio.run_coroutine_threadsafe(exporter(database, store).run(), loop).result()
        return files

    monkeypatch.setattr(slow, "_write", overtaken)
    with pytest.raises(ExportTaken, match="another exporter has made export"):
        await slow.run()
    await exporter(database, store, pieces=Pieces(step=10)).run()
    await assert_complete(database, store)
    found = store.contents()
    expected = 40 if is_first else 45
    assert sum(file.rows for file in found.of("attempts")) == expected, "nothing came twice"


async def test_a_history_ahead_of_its_database_is_not_written_to(
    database: Database, store: HistoryStore
) -> None:
    [run] = await begun(database)
    await end(database, run, "a")
    await exporter(database, store).run()
    async with database.unit_of_work() as uow:  # as after a restore of an older database
        await uow.connection.execute(text("DELETE FROM history_export"))
        await uow.commit()
    with pytest.raises(ExportTaken, match="an older database was restored"):
        await exporter(database, store).run()


async def test_days_that_are_over_become_one_file_and_old_ones_go(
    database: Database, store: HistoryStore
) -> None:
    now = datetime.now(UTC)
    for days in (2, 2, 2, 2, 2, 400):
        [run] = await begun(database)
        await end(database, run, "a", at=now - days * DAY)
        await end(database, run, "b", at=now - days * DAY)
        await exporter(database, store, keep_days=1000).run()
    found = store.contents()
    assert [file.rows for file in found.of("attempts")] == [2, 10]
    await assert_complete(database, store)
    await exporter(database, store, keep_days=300).run()
    assert [file.rows for file in store.contents().of("attempts")] == [10]
    assert len(store.contents().of("plans")) >= 1


async def test_files_that_were_replaced_stay_for_a_day_and_then_go(
    database: Database, store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago, ns = datetime.now(UTC) - 5 * DAY, time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: ns() - 3 * 86_400 * 10**9)  # files are old by now
    for _ in range(6):
        [run] = await begun(database)
        for task in ("a", "b"):
            await end(database, run, task, at=long_ago)
        await exporter(database, store).run()
    folder = Path(store.root, "attempts", f"day={long_ago.date()}")
    named = {file.path.rpartition("/")[2] for file in store.contents().of("attempts")}
    lost = folder / f"{9:012}-{1:016}-{'0' * 8}.parquet"  # by an exporter that was killed long ago
    lost.write_bytes(b"")
    monkeypatch.setattr(time, "time_ns", ns)
    await exporter(database, store, clock=_at_midnight).run()
    assert set(os.listdir(folder)) > named, "readers may have them open"
    assert not lost.exists()
    await exporter(database, store, clock=_in_two_days).run()
    assert set(os.listdir(folder)) == named
    await assert_complete(database, store)


async def _at_midnight(_: Database) -> datetime:
    return datetime.combine(datetime.now(UTC).date() + DAY, datetime.min.time(), UTC)


async def _in_two_days(_: Database) -> datetime:
    return datetime.now(UTC) + 2 * DAY


async def test_joined_files_keep_the_newest_row(database: Database, store: HistoryStore) -> None:
    long_ago = datetime.now(UTC) - 5 * DAY
    [run] = await begun(database)
    await end(database, run, "a", TaskSignal.FAIL, long_ago)
    await end(database, run, "b", at=long_ago)
    await exporter(database, store).run()
    await stored(database, run, ForceRequested("a", long_ago, "me"))
    for _ in range(5):
        [another] = await begun(database)
        for task in ("a", "b"):
            await end(database, another, task, at=long_ago)
        await exporter(database, store).run()
    assert sum(file.rows for file in store.contents().of("instances")) == 6, "seven came"
    assert tuple(state for (state,) in rows(store, "instances", "state")) == ("SUCCEEDED",) * 6


async def test_readers_go_by_the_last_full_manifest(
    database: Database, store: HistoryStore
) -> None:
    for _ in range(55):
        [run] = await begun(database)
        await end(database, run, "a")
        await exporter(database, store).run()
    names = sorted(os.listdir(f"{store.root}/manifest"))
    assert names[0].endswith(".full.json")
    assert len(names) < 55
    await assert_complete(database, store)
    os.unlink(f"{store.root}/manifest/{names[1]}")
    with pytest.raises(DamagedHistory, match="lacks the manifest"):
        store.contents()


def test_files_that_no_manifest_names_go_after_a_day(store: HistoryStore) -> None:
    file = store.put(1, "attempts", NOW.date(), b"x", 1)
    assert store.contents() == Contents()
    assert store.sweep("attempts", NOW.date(), {file.path}, 0) == 0
    assert store.sweep("attempts", NOW.date(), set(), 3600) == 0
    assert store.sweep("attempts", NOW.date(), set(), -1) == 1


def program(url: str, store: HistoryStore, data: Path, points: str = "") -> int:
    """Run the program as a master does; return how it ended."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "shoal.insight.export.program", "--data", str(data)),
            *("--url", store.root.rpartition("/")[0]),
        ],
        env={**os.environ, "SHOAL_DATABASE_URL": url, "SHOAL_FAILPOINTS": points},
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        assert json.loads(done.stdout)["settled_until"]
    return done.returncode


@pytest.mark.parametrize("seed", range(2))
async def test_kills_leave_neither_a_hole_nor_a_double(
    database: Database, store: HistoryStore, url: str, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    points = [f"{name}=kill@1" for name in failpoints.EXPORT if "removal" not in name]
    open_: list[Run] = []
    for step in range(8):
        open_ += await begun(database, chance.randint(1, 3), name=f"flow-{step % 3}")
        for run in chance.sample(open_, k=len(open_) // 2):
            at = NOW + chance.randint(-3, 3) * DAY
            for task in ("a", "b"):
                signal = chance.choice([TaskSignal.SUCCEED, TaskSignal.FAIL])
                await end(database, run, task, signal, at)
            open_.remove(run)
        killed = await asyncio.to_thread(
            program, url, store, tmp_path, chance.choice([*points, ""])
        )
        assert killed in (0, -9)
    assert await asyncio.to_thread(program, url, store, tmp_path) == 0
    await assert_complete(database, store)
    attempts, _ = await ended_in(database)
    assert sum(file.rows for file in store.contents().of("attempts")) == len(attempts)


def test_manifest_of_another_kind_is_damage_that_says_what_to_do(store: HistoryStore) -> None:
    place = Path(store.root, "manifest", f"{1:020}.json")
    place.parent.mkdir(parents=True)
    for content in ("", "[]", "{}", '{"files": [1], "settled_until": null, "sequence": 1}'):
        place.write_text(content)
        with pytest.raises(DamagedHistory, match=r"not a manifest: .*; restore it from a copy"):
            store.contents()


def test_what_killed_exporters_left_half_written_goes_like_other_files(store: HistoryStore) -> None:
    folder, manifests = Path(store.root, f"attempts/day={NOW.date()}"), Path(store.root, "manifest")
    for place in (folder, manifests):
        place.mkdir(parents=True)
    part, long_ago = f".{'0' * 32}.part", f"{1:016}"
    young = f"{time.time_ns() // 1000:016}"
    for at in (long_ago, young):
        Path(folder, f"{1:012}-{at}-00000000.parquet{part}").touch()
    for number in (6, 7):
        Path(manifests, f"{number:020}.json{part}").touch()
    assert store.sweep("attempts", NOW.date(), (), 86_400) == 1
    assert [young in one.name for one in folder.iterdir()] == [True]
    store.forget_before(7)
    assert [one.name[:20] for one in manifests.iterdir()] == [f"{7:020}"]


def test_what_the_program_says_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [f"attempts/day=2026-01-01/{number}.parquet {'x' * 100}" for number in range(5_000)]

    async def export(*_: object, **__: object) -> ExportSummary:
        return ExportSummary(damaged=files, lacking=files)

    monkeypatch.setattr(exporting, "export", export)
    monkeypatch.setattr(sys, "argv", ["program", "--data", str(tmp_path), "--url", "x"])
    assert exporting.main() == 0
    said = capsys.readouterr().out
    assert len(said) < 16_384, "a master reads 64 KiB"
    assert json.loads(said)["lacking"][0] == files[0]
