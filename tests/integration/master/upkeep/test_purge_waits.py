"""Nothing leaves the database that the exported history does not have for certain."""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlalchemy import select

from shoal.core.runs.events import ForceRequested
from shoal.core.runs.retention import Purge
from shoal.core.runs.states import FINISHED_WORKFLOW
from shoal.insight.export.exporter import Exporter
from shoal.insight.export.extraction import Gathered, Pieces
from shoal.insight.history.manifest import HistoryFile
from shoal.insight.history.store import DamagedHistory, HistoryStore
from shoal.insight.history.tables import TABLES
from shoal.runtime import failpoints
from shoal.runtime.failpoints import FailpointReached
from shoal.sql import Database
from shoal.sql.repositories.exports.verified_history import Verified
from shoal.sql.repositories.upkeep import partitions
from shoal.sql.schema.tables import command, event, takeover, workflow_instance
from tests.integration.master.services.backfill_harness import PARTITIONS
from tests.integration.master.upkeep.purge_harness import (
    Keeping,
    ask,
    count,
    database,
    ids,
    publish,
)
from tests.integration.master.upkeep.purge_harness import stored as purge_of
from tests.support.clock import utc_now
from tests.support.database.databases import migrated_url
from tests.support.length import share

__all__ = ["database"]  # a fixture

_KEY = {table.name: table.key[0] for table in TABLES}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "history"


@pytest.fixture
async def store(database: Database, place: Path) -> HistoryStore:
    async with database.unit_of_work() as uow:
        uid = await uow.cluster.uid()
        await uow.commit()
    return HistoryStore(str(place), uid)


@asynccontextmanager
async def keeping(database: Database, programs: int = 1) -> AsyncIterator[Keeping]:
    """A master that purges whatever is over, as far as it was exported; see ``working``."""
    async with Keeping(database, is_exported=True).working(programs) as master:
        yield master


@contextmanager
def failpoints_armed(points: str) -> Iterator[None]:
    """Arm failpoints in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "_armed_points", failpoints.parse(points))
        yield


async def verified(database: Database) -> Verified:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.verified_history.get()


async def asked_for(master: Keeping, **fields: Any) -> Purge:
    """Ask for a purge, have it carried out, and return it."""
    purge_id = await ask(master.database, before=utc_now() + timedelta(days=1), **fields)
    for _ in range(4):  # what waits for others goes round again
        await master.purger.serve_requests()
    return await purge_of(master.database, purge_id)


def exported(store: HistoryStore, table: str = "instances") -> set[int]:
    """Return what the history has, by the manifests; all of its files are whole."""
    files = store.contents().of(table)
    assert all(store.is_whole(file) for file in files)
    return in_whole_files(store, table)


def in_whole_files(store: HistoryStore, table: str = "instances") -> set[int]:
    """Return what the history has, by the manifests, in files that are whole."""
    files = [file for file in store.contents().of(table) if store.is_whole(file)]
    paths = [f"{store.root}/{file.path}" for file in files]
    if not paths:
        return set()
    query = f"SELECT DISTINCT {_KEY[table]} FROM read_parquet(?, hive_partitioning = false)"
    return {row[0] for row in duckdb.connect().execute(query, [paths]).fetchall()}


def paths_of(store: HistoryStore, table: str = "instances") -> list[Path]:
    return [Path(store.root, file.path) for file in store.contents().of(table)]


async def test_nothing_goes_before_it_was_exported(database: Database, store: HistoryStore) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        runs = {(await master.run(workflow_id, f"k-{n}")).id for n in range(3)}
        events = await count(database, event)
        assert not await master.purger.purge()
        rehearsal = await asked_for(master, is_rehearsal=True)
        assert (rehearsal.counts.instances, rehearsal.counts.events) == (0, 0)
        assert rehearsal.held == 3 + events  # their commands wait for the instances
        purge = await asked_for(master)
        assert (purge.counts.instances, purge.held) == (0, 3 + events)
        assert await ids(database) == runs
        await Exporter(database, store).run()
        again = await asked_for(master, is_rehearsal=True)
        assert (again.counts.instances, again.held) == (3, 0)
        gone = await master.purger.purge()
    assert (gone["instances"], gone["commands"]) == (3, 3)
    assert await ids(database) == set()
    assert await count(database, event) == 0
    assert exported(store) == runs


async def test_who_must_may_purge_what_was_not_exported(database: Database) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        await master.run(workflow_id, "k")
        purge = await asked_for(master, even_if_not_exported=True)
    assert (purge.counts.instances, purge.held) == (1, 0)
    assert await ids(database) == set()


async def test_a_late_change_keeps_an_instance_until_it_was_exported_again(
    database: Database, store: HistoryStore
) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        run = await master.run(workflow_id, "k")
        newest = await master.run(workflow_id, "the newest success stays")
        await _force(master, newest.id)
        await Exporter(database, store).run()
        await _force(master, run.id)
        assert (await master.purger.purge())["instances"] == 0
        await Exporter(database, store).run()
        assert (await master.purger.purge())["instances"] == 1
    assert await ids(database) == {newest.id}
    query = "SELECT state FROM read_parquet(?) WHERE instance_id = 1 ORDER BY event_id"
    files = [str(path) for path in paths_of(store)]
    assert duckdb.connect().execute(query, [files]).fetchall() == [("FAILED",), ("SUCCEEDED",)]


async def test_instances_that_the_export_has_not_come_to_stay(
    database: Database, store: HistoryStore
) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        runs = sorted([(await master.run(workflow_id, f"k-{n}")).id for n in range(3)])
        exporter = Exporter(database, store, pieces=Pieces(step=1))
        exporter._gatherer._instances_at_once = 1
        with failpoints_armed("export.after_verified=raise@1"), pytest.raises(FailpointReached):
            await exporter.run()
        assert (await verified(database)).instances == runs[0]
        await master.purger.purge()
    assert await ids(database) == set(runs[1:])
    assert exported(store) == {runs[0]}


async def test_commands_that_were_handled_after_they_were_read_stay(
    database: Database, store: HistoryStore
) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        run = await master.run(workflow_id, "k")
        await _set(database, "PENDING", None)
        await Exporter(database, store).run()
        await _set(database, "DONE", utc_now())
        gone = await master.purger.purge()
        assert (gone["instances"], gone["commands"]) == (1, 0)
        await Exporter(database, store).run()
        assert (await master.purger.purge())["commands"] == 1
    assert exported(store, "commands") == {1}
    assert exported(store) == {run.id}


async def _set(database: Database, state: str, at: Any) -> None:
    async with database.unit_of_work() as uow:
        await uow.connection.execute(command.update().values(state=state, handled_at=at))
        await uow.commit()


async def test_a_file_that_the_storage_has_spoilt_at_once_is_written_again(
    database: Database, store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        run = await master.run(workflow_id, "k")
        write = Exporter._write

        def spoilt(self: Exporter, sequence: int, found: Gathered) -> list[HistoryFile]:
            files = write(self, sequence, found)
            Path(store.root, files[0].path).write_bytes(b"")
            return files

        with monkeypatch.context() as patch:
            patch.setattr(Exporter, "_write", spoilt)
            with pytest.raises(DamagedHistory, match="is not what was written just now"):
                await Exporter(database, store).run()
        assert (await verified(database)).sequence == 0
        assert not await master.purger.purge()
        done = await Exporter(database, store).run()
        assert len(done.damaged) == 1
        assert done.lacking == []
        assert (await master.purger.purge())["instances"] == 1
    assert exported(store) == {run.id}


@pytest.mark.parametrize("is_missing", [True, False])
@pytest.mark.parametrize("table", ["instances", "attempts", "commands", "plans"])
async def test_a_file_that_is_damaged_later_is_exported_again(
    database: Database, store: HistoryStore, table: str, is_missing: bool
) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        for number in range(3):
            await master.run(workflow_id, f"k-{number}")
        await Exporter(database, store).run()
        had = exported(store, table)
        [path] = paths_of(store, table)
        path.unlink() if is_missing else path.write_bytes(path.read_bytes()[:-1] + b"x")
        # It goes no further than to notice it: what was verified before does not count any more.
        with failpoints_armed("export.after_commit=raise@1"), pytest.raises(FailpointReached):
            await Exporter(database, store).run()
        gone = await master.purger.purge()
        assert gone["commands" if table == "commands" else "instances"] == 0
        done = await Exporter(database, store).run()
        assert done.lacking == []
        assert (await verified(database)).trouble is None
        assert exported(store, table) == had
        assert (await master.purger.purge())["commands"] == 3
    assert await ids(database) == set()


async def test_what_only_a_damaged_file_had_is_missed_loudly_until_it_is_whole_again(
    database: Database, store: HistoryStore
) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        first = await master.run(workflow_id, "first")
        await Exporter(database, store).run()
        await master.purger.purge()
        second = await master.run(workflow_id, "second")
        [path] = paths_of(store)
        copy = path.read_bytes()
        path.unlink()
        done = await Exporter(database, store).run()
        assert len(done.damaged) == len(done.lacking) == 1
        assert exported(store) == {second.id}
        found = await verified(database)
        assert str(path)[len(store.root) + 1 :] in str(found.trouble)
        assert "Restore the files from a copy" in str(found.trouble)
        assert (await master.purger.purge())["instances"] == 1, "what is safe may go all the same"
        await Exporter(database, store).run()
        assert (await verified(database)).trouble_since == found.trouble_since
        path.write_bytes(copy)
        assert (await Exporter(database, store).run()).lacking == []
        assert (await verified(database)).trouble is None
        assert exported(store) == {first.id, second.id}
        path.unlink()
        await Exporter(database, store).run()
        done = await Exporter(database, store, forget_damaged=True).run()
    assert done.lacking == []
    assert (await verified(database)).trouble is None


async def test_a_storage_that_is_suddenly_empty_is_not_begun_anew_by_itself(
    database: Database, store: HistoryStore, place: Path
) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        runs = set()
        for number in range(3):
            runs.add((await master.run(workflow_id, f"k-{number}")).id)
            await Exporter(database, store).run()
        os.rename(place, place.with_name("away"))
        runs.add((await master.run(workflow_id, "later")).id)
        with pytest.raises(DamagedHistory, match="is the storage mounted"):
            await Exporter(database, store).run()
        assert not store.last_sequence()
        assert (await asked_for(master, is_rehearsal=True)).held > 0
        await Exporter(database, store, anew=True).run()
        assert exported(store) == runs
        with pytest.raises(DamagedHistory, match="--anew is for an empty history_url"):
            await Exporter(database, store, anew=True).run()
        assert (await master.purger.purge())["instances"] == 4


async def test_a_storage_that_is_away_keeps_the_rows_and_says_why(
    database: Database, store: HistoryStore, place: Path
) -> None:
    workflow_id = await publish(database)
    async with keeping(database) as master:
        run = await master.run(workflow_id, "k")
        _make_a_file(place)
        with pytest.raises(Exception, match="the setting history_url"):
            await Exporter(database, store).run()
        assert not await master.purger.purge()
        os.unlink(place)
        await Exporter(database, store).run()
        assert (await master.purger.purge())["instances"] == 1
    assert exported(store) == {run.id}


def _make_a_file(path: Path) -> None:
    path.write_text("no folder")


async def test_a_joined_file_replaces_nothing_before_it_is_whole(
    database: Database, store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow_id = await publish(database)
    runs = set()
    async with keeping(database) as master:
        for number in range(5):
            runs.add((await master.run(workflow_id, f"k-{number}")).id)
            await Exporter(database, store).run()
        await master.purger.purge()
        put = HistoryStore.put

        def spoilt(self: HistoryStore, *args: Any) -> HistoryFile:
            file = put(self, *args)
            Path(store.root, file.path).write_bytes(b"")
            return file

        later = utc_now() + timedelta(days=3)

        async def at_later(_: Database) -> datetime:
            return later

        with monkeypatch.context() as patch:
            patch.setattr(HistoryStore, "put", spoilt)
            with pytest.raises(DamagedHistory, match="those that it was to replace stay"):
                await Exporter(database, store, clock=at_later).run()
        assert exported(store) == runs
        await Exporter(database, store, clock=at_later).run()
    assert exported(store) == runs
    assert len(store.contents().of("instances")) == 1


async def test_takeovers_stay_until_they_were_exported(
    database: Database, store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "MOST_KEPT", 10)
    async with database.unit_of_work() as uow:
        for epoch in range(1, 4):
            await uow.partitions.raise_epochs(dict.fromkeys(range(PARTITIONS), epoch), f"m{epoch}")
        await uow.commit()
    async with Keeping(database, 4, is_exported=True).working() as master:
        before = await count(database, takeover)
        await master.purger.purge()
        assert await count(database, takeover) == before
        await Exporter(database, store).run()
        await master.purger.purge()
        assert await count(database, takeover) == 10
    assert len(exported(store, "takeovers")) == before


@pytest.mark.parametrize("seed", range(share(10, 1)))
async def test_every_finished_instance_is_in_the_database_or_in_the_history(
    request: pytest.FixtureRequest, place: Path, tmp_path: Path, seed: int
) -> None:
    """Whatever comes in which order: runs, exports, kills of them, damage, purges."""
    kind = ["sqlite", "postgresql"][seed % 2]
    url, chance = migrated_url(request, kind), random.Random(seed)
    points = [f"{name}=kill@1" for name in failpoints.EXPORT if "removal" not in name]
    async with Database(url) as database:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(PARTITIONS)
            uid = await uow.cluster.uid()
            await uow.commit()
        store, ended = HistoryStore(str(place), uid), set()
        workflow_id = await publish(database)
        steps = share(12, 6)
        async with keeping(database, steps + 1) as master:
            for step in range(steps):
                for number in range(chance.randint(0, 3)):
                    ended.add((await master.run(workflow_id, f"{step}-{number}")).id)
                if chance.random() < 0.3 and (left := sorted(await ids(database))):
                    await _force(master, chance.choice(left))
                armed = chance.choice([*points, "", ""])
                code = await asyncio.to_thread(_export, url, place, tmp_path, armed)
                assert code in (0, -9)
                await master.purger.purge()
                young = {one for one in ended if one in await ids(database)}
                # A killed export may leave a damaged file; its rows are still in the database.
                assert ended - young <= in_whole_files(store), f"after {armed or 'no kill'}"
                if chance.random() < 0.4:
                    await _damage_what_is_still_there(store, database, chance)
            assert await asyncio.to_thread(_export, url, place, tmp_path, "") == 0
            await master.purger.purge()
        assert len(await ids(database)) <= 1, "the newest success stays"
        assert exported(store) == ended


async def _force(master: Keeping, instance_id: int) -> None:
    async with master.database.unit_of_work(read_only=True) as uow:
        instance = await uow.instances.get(instance_id)
        task = (await uow.tasks.of_instance(instance_id))[0].task
    force = ForceRequested(task, utc_now(), "me")
    await master.engine.submit(instance.partition, instance_id, force)


async def _damage_what_is_still_there(
    store: HistoryStore, database: Database, chance: random.Random
) -> None:
    """Damage a file all of whose instances are in the database yet, if there is one."""
    async with database.unit_of_work(read_only=True) as uow:
        states = [str(state) for state in FINISHED_WORKFLOW]
        query = select(workflow_instance.c.id).where(workflow_instance.c.state.in_(states))
        there = {row.id for row in await uow.connection.rows(query)}
    paths = [path for path in paths_of(store) if path.exists()]  # one may be damaged already
    for path in chance.sample(paths, k=len(paths)):
        query_ids = f"SELECT instance_id FROM read_parquet('{path}')"
        if {row[0] for row in duckdb.connect().execute(query_ids).fetchall()} <= there:
            path.unlink()
            return


def _export(url: str, place: Path, data: Path, points: str) -> int:
    """Export as a master does; return how that ended."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "shoal.insight.export.program", "--data", str(data)),
            *("--url", str(place)),
        ],
        env={**os.environ, "SHOAL_DATABASE_URL": url, "SHOAL_FAILPOINTS": points},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode
