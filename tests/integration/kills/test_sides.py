"""The observers see jobs of either kind: one at a time, and two of one task at one moment."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

import httpx
import psycopg
import pymysql
import pytest

from tests.integration.drivers.servers import Served
from tests.kills.sides.databases import MariadbSide, PostgresqlSide
from tests.kills.sides.local import LocalSide
from tests.kills.sides.requests import RequestsSide
from tests.kills.sides.side import Side, Watch
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.drivers.conftest"]
MARKER = "kill_planted_0001"
OTHER = "kill_planted_0002"


@contextmanager
def program(marker: str, attempt: int, **more: str) -> Iterator[None]:
    env = {"SHOAL_WORKFLOW": marker, "SHOAL_TASK_INSTANCE_ID": str(attempt), **more}
    process = subprocess.Popen(["sleep", "600"], env=os.environ | env)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def statement(connection: Any, text: str) -> Iterator[None]:
    def run() -> None:
        with suppress(psycopg.Error, pymysql.Error):
            connection.cursor().execute(text)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.parametrize("remote", [False, True], ids=["worker", "host"])
async def test_two_live_process_trees_of_a_task_are_seen(remote: bool) -> None:
    more = {"SHOAL_REMOTE_TAG": "shoal-1"} if remote else {}
    await doubles_are_seen(
        LocalSide(remote=remote), lambda marker, attempt: program(marker, attempt, **more)
    )


async def test_processes_of_one_attempt_are_one_job() -> None:
    with Watch(LocalSide()) as watch, program(MARKER, 1), program(MARKER, 1):
        await eventually(lambda: watch.seen(MARKER).live)
        looks = watch.looks
        await eventually(lambda: watch.looks > looks + 2)
        assert watch.seen(MARKER).live == {"1"}
        assert not watch.seen(MARKER).doubles


async def test_two_live_statements_of_a_task_are_seen_in_postgresql(postgresql: Served) -> None:
    source = postgresql.source
    with ExitStack() as connections:

        def job(marker: str, number: int) -> Any:
            connection = connections.enter_context(
                psycopg.connect(
                    host=source.host,
                    port=source.port,
                    dbname=source.database,
                    user=source.user,
                    password=source.password,
                    autocommit=True,
                )
            )
            return statement(connection, f"SELECT pg_sleep(600), '{marker}'")

        def end() -> None:
            postgresql.asked(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'etl'"
            )

        side = PostgresqlSide(postgresql)
        connections.callback(side.close)
        await doubles_are_seen(side, job, end)


async def test_two_live_statements_of_a_task_are_seen_in_mariadb(mariadb: Served) -> None:
    source = mariadb.source

    def job(marker: str, number: int) -> Any:
        connection = pymysql.connect(
            host=source.host,
            port=source.port or 0,
            user=source.user,
            password=source.password.encode(),
        )
        return statement(connection, f"SELECT SLEEP(600), '{marker}'")

    def end() -> None:
        for row in mariadb.asked(
            "SELECT id FROM information_schema.processlist WHERE user = 'etl'"
        ):
            mariadb.asked(f"KILL {row[0]}")

    await doubles_are_seen(MariadbSide(mariadb), job, end)


async def doubles_are_seen(
    side: Side,
    job: Callable[[str, int], AbstractContextManager[None]],
    end: Callable[[], None] = lambda: None,
) -> None:
    """Check what a watch says of one job of a task, of one beside it, and of a double.

    ``end`` ends jobs that their contexts wait for.
    """
    with Watch(side) as watch, ExitStack() as jobs:
        seen = watch.seen(MARKER)
        try:
            jobs.enter_context(job(MARKER, 1))
            jobs.enter_context(job(OTHER, 2))
            await eventually(lambda: len(seen.live) == 1 and watch.seen(OTHER).live)
            assert seen.doubles == []
            jobs.enter_context(job(MARKER, 3))
            await eventually(lambda: seen.doubles)
        finally:
            end()
        jobs.close()
        await eventually(lambda: not seen.live)
        assert not watch.seen(OTHER).doubles


async def test_two_live_requests_of_a_task_are_seen() -> None:
    side = RequestsSide()
    async with side.server, httpx.AsyncClient(trust_env=False, timeout=600) as client:

        def ask(marker: str) -> asyncio.Task[Any]:
            url = f"{side.server.url}/work?case={marker}&seconds=600"
            return asyncio.create_task(client.post(url))

        with Watch(side) as watch:
            seen = watch.seen(MARKER)
            asked = [ask(MARKER), ask(OTHER)]
            await eventually(lambda: len(seen.live) == 1 and watch.seen(OTHER).live)
            assert seen.doubles == []
            asked.append(ask(MARKER))
            await eventually(lambda: seen.doubles)
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            await eventually(lambda: not seen.live)
        assert side.received[MARKER] == 2
        assert side.answered[MARKER] == 0
