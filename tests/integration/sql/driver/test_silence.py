"""PostgreSQL that falls silent or slow: connections are given up if they are gone, only then."""

import asyncio
import random
import time
from collections.abc import AsyncIterator

import psycopg
import pytest
from sqlalchemy import make_url, text

from shoal.sql import Database
from shoal.sql.driver.patience import Patience
from shoal.sql.errors import DatabaseUnavailable
from tests.integration.sql.given import NOW
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S

# Short, so that tests are; in the proportions of the real ones.
PATIENCE = Patience(connect_s=2.0, doubt_s=1.0, answer_s=4.0)


@pytest.fixture
async def proxy(postgresql_copy: str) -> AsyncIterator[TcpProxy]:
    """A proxy in front of the server's socket."""
    folder = make_url(postgresql_copy).query["host"]
    async with TcpProxy(f"{folder}/.s.PGSQL.5432", 0) as proxy:
        yield proxy


@pytest.fixture
async def database(postgresql_copy: str, proxy: TcpProxy) -> AsyncIterator[Database]:
    """A migrated database behind the proxy, with four connections that are in use already."""
    async with Database(proxied(postgresql_copy, proxy), pool_size=4, patience=PATIENCE) as opened:
        async with asyncio.TaskGroup() as all_at_once:
            for _ in range(4):
                all_at_once.create_task(sleep(opened, 0.05))
        yield opened


def proxied(url: str, proxy: TcpProxy) -> str:
    query = {**make_url(url).query, "sslmode": "disable"}
    del query["host"]
    there = make_url(url).set(host="127.0.0.1", port=proxy.port, query=query)
    return there.render_as_string(hide_password=False)


async def sleep(database: Database, seconds: float) -> None:
    async with database.unit_of_work() as uow:
        await uow.connection.rows(text(f"SELECT pg_sleep({seconds})"))


async def ensure(database: Database, name: str) -> None:
    async with database.unit_of_work() as uow:
        await uow.projects.ensure(name, NOW)
        await uow.commit()


async def test_failover_without_a_farewell_costs_all_connections_together_one_doubt(
    database: Database, proxy: TcpProxy
) -> None:
    proxy.strand()
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(DatabaseUnavailable, match="lost without a sign"):
            await ensure(database, "p")
        for n in range(4):  # a request on one of the three others would fail in the same way
            await ensure(database, f"p{n}")


async def test_commit_without_an_answer_is_unknown(database: Database, proxy: TcpProxy) -> None:
    proxy.swallow_from = b"COMMIT"
    with pytest.raises(DatabaseUnavailable):
        await asyncio.wait_for(ensure(database, "p"), DEADLINE_S)
    proxy.heal()
    async with asyncio.timeout(DEADLINE_S), database.unit_of_work() as uow:
        assert [one.name for one in await uow.projects.list()] == ["p"]  # it was carried out


async def test_server_at_work_is_waited_for_however_long(database: Database) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await sleep(database, 2 * PATIENCE.answer_s)


async def test_lock_is_waited_for_longer_than_silence(
    database: Database, postgresql_copy: str
) -> None:
    with psycopg.connect(postgresql_copy) as other:
        other.execute("LOCK TABLE project")
        waiting = asyncio.create_task(ensure(database, "p"))
        await asyncio.wait([waiting], timeout=1.5 * PATIENCE.answer_s)
        assert not waiting.done()
    await asyncio.wait_for(waiting, DEADLINE_S)


async def test_work_beyond_its_limit_is_given_up(postgresql_copy: str) -> None:
    patience = Patience(doubt_s=0.5, answer_s=4.0, query_s=2.0)
    async with Database(postgresql_copy, patience=patience) as database:
        with pytest.raises(DatabaseUnavailable, match="at work for"):
            async with asyncio.timeout(DEADLINE_S):
                await sleep(database, DEADLINE_S)


async def test_migrating_may_take_any_time(postgresql_copy: str) -> None:
    patience = Patience(doubt_s=0.5, answer_s=4.0, short_s=0.1)
    with psycopg.connect(postgresql_copy) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [0x53484F414C])  # it migrates, too
        async with Database(postgresql_copy, patience=patience) as database:
            migrating = asyncio.create_task(database.migrate())
            await asyncio.wait([migrating], timeout=3.0)
            assert not migrating.done()
            other.rollback()
            await asyncio.wait_for(migrating, DEADLINE_S)


async def test_slow_database_is_no_silent_one(database: Database, proxy: TcpProxy) -> None:
    dice = random.Random(7)
    # Beyond doubt_s, and far enough below answer_s for a machine that is busy.
    longest_s = 0.5 * PATIENCE.answer_s
    proxy.late = lambda: dice.uniform(0.25 * longest_s, longest_s)
    async with asyncio.timeout(DEADLINE_S):
        for n in range(3):
            await ensure(database, f"p{n}")


async def test_new_connections_to_a_slow_database_are_made(
    postgresql_copy: str, proxy: TcpProxy
) -> None:
    patience = Patience(doubt_s=0.6, answer_s=2.0)
    proxy.late = lambda: 0.5 * patience.answer_s
    async with Database(proxied(postgresql_copy, proxy), patience=patience) as database:
        await asyncio.wait_for(ensure(database, "p"), DEADLINE_S)


async def test_database_that_answers_nobody_is_given_up_by_everybody(
    database: Database, proxy: TcpProxy
) -> None:
    proxy.freeze()
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(2):  # an old connection, a new one
            with pytest.raises(DatabaseUnavailable, match="no answer"):
                await ensure(database, "p")
    proxy.heal()
    await asyncio.wait_for(ensure(database, "p"), DEADLINE_S)


async def test_host_that_is_gone_is_not_connected_to_for_long() -> None:
    # An address that is never answered from: the loopback of nobody would refuse.
    url = "postgresql://nobody@192.0.2.1/nothing"
    async with Database(url, patience=Patience(connect_s=0.5)) as database:
        with pytest.raises(DatabaseUnavailable):
            async with asyncio.timeout(DEADLINE_S):
                await database.ping()


async def test_caller_that_goes_away_is_not_held_up_by_silence(
    database: Database, proxy: TcpProxy
) -> None:
    proxy.strand()
    asking = asyncio.create_task(ensure(database, "p"))
    await asyncio.sleep(0.05)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, DEADLINE_S)
    await asyncio.wait_for(ensure(database, "p"), DEADLINE_S)


async def test_leaving_process_waits_for_no_silent_database(
    database: Database, proxy: TcpProxy
) -> None:
    proxy.freeze()
    database.hurry()
    with pytest.raises(DatabaseUnavailable, match=r"no answer from the database for 0\."):
        await asyncio.wait_for(ensure(database, "p"), DEADLINE_S)


async def test_suspended_database_keeps_nobody_waiting(database: Database, proxy: TcpProxy) -> None:
    proxy.freeze()
    # More than there are connections: some wait for an answer, some for a turn.
    asking = [asyncio.create_task(ensure(database, f"p{n}")) for n in range(6)]
    await asyncio.sleep(0.1)
    database.suspend("given up")
    for one in asking:
        with pytest.raises(DatabaseUnavailable, match="given up"):
            await asyncio.wait_for(one, DEADLINE_S)
    with pytest.raises(DatabaseUnavailable, match="given up"):
        await ensure(database, "p")
    proxy.heal()
    await asyncio.wait_for(database.probe(), DEADLINE_S)  # it can be asked all the same
    database.resume()
    await asyncio.wait_for(ensure(database, "p"), DEADLINE_S)


async def test_probes_of_an_idle_database_make_no_connections(
    database: Database, proxy: TcpProxy
) -> None:
    proxy.heard = []
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(5):
            asked_s = time.monotonic()
            await database.probe()
            assert database.answered_s > asked_s
    assert len(proxy.heard) >= 5
    assert not [one for one in proxy.heard if b"application_name" in one]  # no connection begins
    await asyncio.wait_for(ensure(database, "p"), DEADLINE_S)


async def test_lost_connections_are_no_lost_database(database: Database, proxy: TcpProxy) -> None:
    proxy.strand()
    proxy.heard = []
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(3):
            await database.probe()
        begun = [one for one in proxy.heard if b"application_name" in one]
        assert begun  # it was asked over a new connection
        await asyncio.sleep(2 * PATIENCE.doubt_s)  # the lost connections are given up meanwhile
        await ensure(database, "p")


async def test_suspending_ends_the_wait_for_a_new_connection(
    postgresql_copy: str, proxy: TcpProxy
) -> None:
    proxy.freeze()
    async with Database(proxied(postgresql_copy, proxy), patience=PATIENCE) as database:
        asking = asyncio.create_task(ensure(database, "p"))
        await asyncio.sleep(0.1)
        database.suspend("given up")
        with pytest.raises(DatabaseUnavailable, match="given up"):
            await asyncio.wait_for(asking, DEADLINE_S)
