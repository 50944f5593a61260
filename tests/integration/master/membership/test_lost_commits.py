"""A database that has lost commits is noticed, and gives none of the lost ids again."""

import asyncio
import json
import shutil
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, text, update
from structlog.testing import capture_logs

from shoal.coordination import ZkSession
from shoal.coordination.cluster import layout
from shoal.core.runs.commands import CommandType
from shoal.core.runs.records import PartitionRow, Watermark
from shoal.master.membership.lost_commits import LOOK, LostCommits
from shoal.sql import Database
from shoal.sql.errors import DatabaseUnavailable
from shoal.sql.repositories.upkeep.watermarks import MARGIN
from shoal.sql.schema.tables import cluster, event
from tests.integration.master.conftest import PARTITIONS, Bench
from tests.support.clock import utc_now
from tests.support.database.databases import migrated_url
from tests.support.database.postgresql import PostgresqlServer
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S

Copy = Callable[[], Awaitable[str]]


@pytest.fixture
async def session(zk_chroot: str) -> AsyncIterator[ZkSession]:
    async with ZkSession(zk_chroot, session_timeout_s=STEADY_SESSION_S) as session:
        yield session


@dataclass
class Site:
    """The URL of a database, how to copy it while it is closed, and the tree."""

    url: str
    copy: Copy
    session: ZkSession

    async def look(self, database: Database) -> LostCommits:
        """Look as a master does that has just started."""
        async with database.unit_of_work() as uow:
            uid = await uow.cluster.uid()
            await uow.commit()
        found = LostCommits(database, self.session, uid, utc_now)
        await found.look()
        return found


@pytest.fixture(params=["sqlite", "postgresql"])
async def site(
    request: pytest.FixtureRequest, session: ZkSession, tmp_path: Path
) -> AsyncIterator[Site]:
    url = migrated_url(request, request.param)
    if request.param == "sqlite":

        async def copy_file() -> str:
            return f"sqlite:///{shutil.copy(url.removeprefix('sqlite:///'), tmp_path / 'older.db')}"

        yield Site(url, copy_file, session)
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    async with AsyncExitStack() as copies:

        async def copy_database() -> str:
            name = f"test_older_{uuid.uuid4().hex[:12]}"
            template = url.partition("?")[0].rpartition("/")[2]
            copied = await asyncio.to_thread(server.create, name, template)
            copies.push_async_callback(asyncio.to_thread, server.drop, name)
            return copied

        yield Site(url, copy_database, session)


async def happen(database: Database, times: int = 1) -> int:
    """Commit events; return the id of the last one."""
    values = {"at": utc_now(), "kind": "test", "project": "default", "data": {}}
    async with database.unit_of_work() as uow:
        [ids] = await uow.connection.reserve_ids({event: times})
        await uow.connection.execute(insert(event), [{"id": one, **values} for one in ids])
        await uow.commit()
    return ids[-1]


async def epochs(database: Database) -> list[int]:
    async with database.unit_of_work(read_only=True) as uow:
        return [one.epoch for one in await uow.partitions.all()]


async def test_ids_of_lost_commits_are_not_given_again(site: Site) -> None:
    async with Database(site.url) as database:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(2)
            await uow.partitions.raise_epochs({0: 10, 1: 20}, "m")
            await uow.commit()
        await happen(database)
    older = await site.copy()
    async with Database(site.url) as database:
        last = await happen(database, 5)
        assert (await site.look(database)).reported is None
    async with Database(older) as database:
        plans = database.plans
        with capture_logs() as logs:
            found = await site.look(database)
        assert found.reported is not None
        [line] = [one for one in logs if one["log_level"] == "error"]
        assert line["missing"] == {"event": f"{last - 5}, was {last}"}
        assert await epochs(database) == [11, 21], "what owners know is ahead of the database"
        assert database.plans is not plans
        assert await happen(database) == last + MARGIN + 1
        with capture_logs() as logs:
            again = await site.look(database)
        assert again.reported == found.reported, "each master reports it"
        assert not [one for one in logs if one["log_level"] == "error"], "it is repaired once"
        assert await epochs(database) == [11, 21]


async def test_lost_beats_are_lost_commits_too(site: Site) -> None:
    async with Database(site.url) as database:
        async with database.unit_of_work() as uow:
            await uow.connection.execute(update(cluster).values(tree_beats=7))
            await uow.commit()
        master = await site.look(database)
        async with database.unit_of_work() as uow:
            await uow.connection.execute(update(cluster).values(tree_beats=6))
            await uow.commit()
        await master.look()
        assert master.reported is not None
        async with database.unit_of_work(read_only=True) as uow:
            progress = await uow.watermarks.read()
        assert progress is not None
        assert progress.committed.beats == 8


async def test_deleted_rows_and_ids_of_a_rollback_are_not_lost(site: Site) -> None:
    async with Database(site.url) as database:
        master = await site.look(database)
        last = await happen(database, 3)
        await master.look()
        async with database.unit_of_work() as uow:
            await uow.connection.execute(delete(event))
            await uow.commit()
        async with database.unit_of_work() as uow:
            await uow.connection.reserve_ids({event: 5})
        await master.look()
        assert master.reported is None
        assert last < await happen(database) <= last + 6


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"[]",
        b'{"cluster": "another", "beats": 99, "ids": {"event": 99}}',
        b'{"beats": 99, "ids": {"event": 99}}',
        b'{"cluster": "UID", "beats": "99", "ids": {"event": 99}}',
        b'{"cluster": "UID", "beats": 99, "ids": {"event": 1e300}}',
        b'{"cluster": "UID", "beats": 99, "ids": {"event": 4611686018427387904}}',
        b'{"cluster": "UID", "beats": 99, "ids": ["event"]}',
    ],
)
async def test_znode_that_says_nothing_of_this_cluster_is_written_anew(
    sqlite_url: str, session: ZkSession, junk: bytes
) -> None:
    async with Database(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            uid = await uow.cluster.uid()
            await uow.commit()
        last = await happen(database)
        await session.create(layout.WATERMARK, junk.replace(b"UID", uid.encode()))
        master = LostCommits(database, session, uid, utc_now)
        await master.look()
        assert master.reported is None
        assert f'"event": {last}'.encode() in (await session.get(layout.WATERMARK)).data


async def test_junk_in_place_of_the_beats_is_not_compared(
    sqlite_url: str, session: ZkSession
) -> None:
    async with Database(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            uid = await uow.cluster.uid()
            await uow.commit()
        master = LostCommits(database, session, uid, utc_now)
        await master.look()
        async with database.unit_of_work() as uow:
            await uow.connection.execute(update(cluster).values(tree_beats=text("'soon'")))
            await uow.commit()
        await master.look()
        assert master.reported is None


async def test_watermark_outlives_the_tree_that_kept_it(
    sqlite_url: str, session: ZkSession
) -> None:
    async with Database(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            uid = await uow.cluster.uid()
            await uow.commit()
        master = LostCommits(database, session, uid, utc_now)
        last = await happen(database)
        await master.look()
        await session.delete(layout.WATERMARK)
        await master.look()
        assert f'"event": {last}'.encode() in (await session.get(layout.WATERMARK)).data


async def test_loss_is_reported_for_a_week(sqlite_url: str, session: ZkSession) -> None:
    now = utc_now()
    async with Database(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            uid = await uow.cluster.uid()
            await uow.commit()
        master = LostCommits(database, session, uid, lambda: now)
        mark = Watermark(10**6, {"event": 5})
        await session.create(
            layout.WATERMARK,
            f'{{"cluster": "{uid}", "beats": {mark.beats}, "ids": {{"event": 5}}}}'.encode(),
        )
        await master.look()
        assert master.reported is not None
        now += timedelta(days=8)
        assert master.reported is None


async def test_looks_are_a_session_timeout_apart_unless_a_write_was_refused(
    sqlite_url: str, session: ZkSession
) -> None:
    now_s = 1000.0
    async with Database(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            uid = await uow.cluster.uid()
            await uow.commit()
        master = LostCommits(database, session, uid, utc_now, lambda: now_s)
        await master.look()

        async def sees(last: int) -> bool:
            await master.look_if_due()
            return f'"event": {last}'.encode() in (await session.get(layout.WATERMARK)).data

        now_s += 0.99 * LOOK * session.timeout_s
        assert not await sees(last := await happen(database)), "an idle cluster pays for each look"
        now_s += 0.02 * LOOK * session.timeout_s
        assert await sees(last)
        assert not await sees(last := await happen(database))
        master.suspect()
        assert await sees(last)
        assert not await sees(await happen(database)), "one refused write makes one look due"


async def test_look_that_failed_stays_due(
    sqlite_url: str, session: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Database(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            uid = await uow.cluster.uid()
            await uow.commit()
        master = LostCommits(database, session, uid, utc_now, lambda: 0.0)
        await master.look()
        last = await happen(database)
        master.suspect()
        with monkeypatch.context() as failing:
            failing.setattr(database, "unit_of_work", _unavailable)
            with pytest.raises(DatabaseUnavailable):
                await master.look_if_due()
        await master.look_if_due()
        assert f'"event": {last}'.encode() in (await session.get(layout.WATERMARK)).data


def _unavailable(**_: object) -> None:
    raise DatabaseUnavailable("gone")


async def test_master_whose_write_is_refused_looks_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the time of a look nor that of a beat comes while the test runs."""
    monkeypatch.setattr("shoal.master.membership.lost_commits.LOOK", 1e6)
    monkeypatch.setattr("shoal.master.membership.tree_lease.BEAT", 1e6)
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        async with asyncio.timeout(DEADLINE_S):
            while (
                sum(one.owner is not None for one in await partitions(bench.database)) < PARTITIONS
            ):
                await asyncio.sleep(0.02)
        node = await bench.session.get(layout.WATERMARK)
        known = json.loads(node.data)
        lost = known["ids"]["event"] + 10**6
        known["ids"]["event"] = lost
        await bench.session.set(layout.WATERMARK, json.dumps(known).encode())
        async with bench.database.unit_of_work() as uow:
            await uow.partitions.raise_epochs(
                {one.index: one.epoch + 10**4 for one in await uow.partitions.all()}, "another"
            )
            await uow.commit()
        await bench.command(CommandType.START, workflow, "k")
        async with asyncio.timeout(DEADLINE_S):
            while not json.loads((await bench.session.get(layout.WATERMARK)).data)["lost_at"]:
                await asyncio.sleep(0.02)


async def partitions(database: Database) -> list[PartitionRow]:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.partitions.all()
