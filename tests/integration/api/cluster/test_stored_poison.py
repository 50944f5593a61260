"""Junk in every stored column at once: each service still makes progress with all else.

The columns are those of the schema. The rows of one project, its accounts, grants, roll-ups and
audit entries are spoilt; a run of another one is started, its end is told, and the events, export
and purge go on; every list is shown. ``SHOAL_POISON_SEED`` writes other junk,
``SHOAL_POISON_ROUNDS`` more often, ``SHOAL_POISON_SHARE=1`` all of the junk into each column.
"""

import asyncio
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Boolean, Column, Float, Integer, Table

from shoal.alert.main import serve as serve_alerts
from shoal.alert.settings import AlertSettings
from shoal.api.operations.feed import Feed
from shoal.api.web.sse import MEDIA_TYPE as STREAM
from shoal.core.runs.quarantine import QuarantinedItem
from shoal.master.main import serve as serve_master
from shoal.master.settings import MasterSettings
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from shoal.sql.schema import tables
from shoal.sql.schema.types import Json, UtcDateTime
from tests.contract.described import described
from tests.integration.api.cluster.spoilt_rows import (
    NAMES,
    OF_CLUSTER,
    OTHERS,
    ROWS,
    columns_of_others,
    other_rows,
    spoil,
)
from tests.integration.api.conftest import PREFIX, Api, new_cluster
from tests.integration.api.stock import stocked
from tests.support.database.databases import migrated_url
from tests.support.servers.http_server import HttpServer, answer, says

SEED = int(os.environ.get("SHOAL_POISON_SEED", "1"))
ROUNDS = int(os.environ.get("SHOAL_POISON_ROUNDS", "2"))
IS_WHOLE = float(os.environ.get("SHOAL_POISON_SHARE", "0.1")) >= 1
PROGRESS_S = 300.0  # until a run has gone through; only a hang takes so long
DIGITS = "9" * 5_000
TEXTS = ("[" * 100_000, "${" * 1_000, "{{" * 1_000, DIGITS, "x" * (1 << 20), "a\0b", "", "JUNK")
JSONS: tuple[str, ...] = (
    "[" * 100_000,
    '{"a":' * 50_000,
    DIGITS,
    "NaN",
    '{"a": NaN}',
    f'{{"a": {DIGITS}}}',
    "null",
)
JSONS += ('"text"', "[1]", '{"a": [[[]]]}', '{"a": "\\ud800\\u0000"}', '["[[["]', "not json", "17")
NUMBERS = (-1, 0, 2**31 - 1, 2**62, -(2**62), "JUNK", 1e308)
MOMENTS: tuple[int | str, ...] = (
    2**62,
    -(2**62),
    253_402_214_400_000_000,
    -62_135_510_400_000_000,
    "JUNK",
)
MOMENTS += ("infinity", "-infinity", "294276-01-01", "0044-03-15 BC")  # PostgreSQL has these
PROBE = {"tasks": [{"name": "a", "type": "SHELL", "params": {"script": "x"}, "enabled": False}]}


def junk_of(column: Column[Any]) -> Sequence[Any]:
    """Return values that no consumer foresaw."""
    if isinstance(column.type, Json):
        return JSONS
    if isinstance(column.type, UtcDateTime):
        return MOMENTS
    if isinstance(column.type, Integer | Boolean | Float):
        return NUMBERS
    length = getattr(column.type, "length", None)
    return [text[: length or len(text)] for text in TEXTS]


def spoilable() -> Iterator[tuple[Table, Column[Any]]]:
    """Yield the columns that say something of a row, not which one it is."""
    for table in ROWS:
        for column in table.c:
            if column.name not in NAMES and not column.primary_key:
                yield table, column
    for column in columns_of_others():
        yield column.table, column


def test_each_table_of_the_schema_is_spoilt_or_belongs_to_the_cluster() -> None:
    known = [*ROWS, *OTHERS, *OF_CLUSTER]
    assert len(known) == len(set(known))
    assert set(known) == set(tables.project.metadata.sorted_tables)


@pytest.fixture(params=["sqlite", "postgresql"])
def cluster(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    zk_chroot: str,
    migrated_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> ClusterSettings:
    """A cluster on either database."""
    made = new_cluster(tmp_path, zk_chroot, migrated_file)
    if request.param == "sqlite":
        return made
    url = migrated_url(request, request.param)
    monkeypatch.setenv("SHOAL_DATABASE_URL", url)  # of the processes that masters start
    return made.model_copy(update={"database_url": url})


@asynccontextmanager
async def at_work(cluster: ClusterSettings) -> AsyncIterator[list[asyncio.Task[None]]]:
    """A master and an alert server, which leave in order."""
    stop = asyncio.Event()
    master = MasterSettings(
        scan_interval_s=0.5,
        sweep_interval_s=0.5,
        initial_rebalance_delay_s=0.0,
        export_interval_s=2.0,
        keep_instances_days=1,
    )
    alerts = AlertSettings(poll_s=0.05, watch_s=0.5, http_allow="127.0.0.0/8")
    tasks = [
        asyncio.create_task(serve_master(master, cluster, stop)),
        asyncio.create_task(serve_alerts(alerts, cluster, stop)),
    ]
    try:
        yield tasks
    finally:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)


async def watched(api: Api, sink: HttpServer) -> None:
    """The project "good" is told of each run of "probe"."""
    home = f"{PREFIX}/projects/good"
    for place, body in (
        ("workflows/probe", PROBE),
        ("alert-channels/sink", {"kind": "webhook", "options": {"url": f"{sink.url}/hook"}}),
        ("alert-receivers/sink", {"members": [{"targets": [{"channel": "sink"}]}]}),
        (
            "alert-rules/probe",
            {
                "triggers": ["run.succeeded"],
                "workflows": ["probe"],
                "receivers": ["sink"],
                "group_for": 0,
            },
        ),
    ):
        stored = await api.client.put(f"{home}/{place}", json=body)
        assert stored.status_code in (200, 201), stored.text


async def goes_through(api: Api, sink: HttpServer) -> None:
    """A run of the good project ends, its end is an event and a message."""
    before = len(sink.received)
    feed = Feed(api.services.store.database)
    try:
        async with (
            feed.subscribe(lambda event: event.kind == "instance.state") as events,
            asyncio.timeout(PROGRESS_S),
        ):
            command = await api.command(type="START", project="good", workflow="probe")
            async for piece in events.pieces():
                if any(
                    one.data.get("workflow") == "probe" and one.data["state"] == "SUCCEEDED"
                    for one in piece
                ):
                    break
            shown = (await api.client.get(f"{PREFIX}/commands/{command['id']}")).json()
            assert shown["state"] == "DONE", shown
            while len(sink.received) == before:
                await asyncio.sleep(0.05)
    finally:
        await feed.aclose()


async def purged(api: Api) -> None:
    """A purge comes to its end."""
    body = {"before": "2020-01-01T00:00:00Z", "even_if_not_exported": True}
    asked = (await api.client.post(f"{PREFIX}/purges", json=body)).json()
    async with asyncio.timeout(PROGRESS_S):
        while asked["finished_at"] is None:
            await asyncio.sleep(0.1)
            asked = (await api.client.get(f"{PREFIX}/purges/{asked['id']}")).json()


async def exported(api: Api, began: datetime) -> None:
    """What has happened since ``began`` is exported. Without news nothing is stored."""
    async with asyncio.timeout(PROGRESS_S):
        while True:
            async with api.services.store.unit_of_work(read_only=True) as uow:
                found = await uow.verified_history.get()
            if found.verified_at is not None and found.verified_at > began:
                return
            await asyncio.sleep(0.2)


def lists() -> list[str]:
    """Return where all lists and pages are asked for."""
    return [
        path
        for path, operations in described()["paths"].items()
        if "get" in operations
        and "{" not in path
        and STREAM not in operations["get"]["responses"].get("200", {}).get("content", ())
    ]


async def set_aside(api: Api) -> list[QuarantinedItem]:
    """All that is quarantined, with reasons."""
    async with api.services.store.unit_of_work(read_only=True) as uow:
        found = await uow.quarantine.list(10_000)
    assert all(one.reason for one in found)
    return found


async def test_every_service_makes_progress_beside_junk_in_every_column(
    api: Api, cluster: ClusterSettings
) -> None:
    create_key(cluster.secrets_key_file)
    good = await stocked(api, "good")
    silence = f"{PREFIX}/projects/good/alert-silences/{good['silence_id']}"
    assert (await api.client.delete(silence)).status_code == 204
    bad: Mapping[str, Any] = await other_rows(api, await stocked(api, "bad"))
    asked = lists()
    before = {path: (await api.client.get(path)).status_code for path in asked}
    assert not {path: status for path, status in before.items() if status >= 500}
    written: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        sink = await stack.enter_async_context(HttpServer({"/hook": says(answer(200, "ok"))}))
        await watched(api, sink)
        choice = random.Random(SEED)
        rounds = max(len(junk_of(column)) for _, column in spoilable()) if IS_WHOLE else ROUNDS
        for number in range(rounds):
            for table, column in spoilable():
                junk = [*junk_of(column)]
                if IS_WHOLE:
                    first = number % len(junk)
                    junk = junk[first:] + junk[:first]
                elif choice.random() < 0.7 or not number:
                    choice.shuffle(junk)
                else:
                    continue
                for value in junk:  # the database does not take each
                    if await spoil(api, column, value, bad):
                        written[table.name] += 1
                        break
            began = datetime.now(UTC)
            async with at_work(cluster) as tasks:
                await goes_through(api, sink)
                await purged(api)
                await exported(api, began)
                await goes_through(api, sink)
                hidden = [
                    f"{path}: {shown.status_code} {shown.text[:300]}"
                    for path in asked
                    if (shown := await api.client.get(path)).status_code != before[path]
                ]
                assert not hidden, "\n".join([f"round {number}", *hidden])
                assert not [one for one in tasks if one.done()], (number, written)
            aside = await set_aside(api)
            kinds = Counter(f"{one.consumer}: {one.kind}" for one in aside)
            sys.stdout.write(
                f"\nround {number}: {sum(written.values())} columns of {len(written)} tables, "
                f"quarantined: {dict(kinds)}\n"
            )
            assert aside
    # A boolean of PostgreSQL holds nothing else.
    is_free = cluster.database.startswith("sqlite")
    spoilt = {
        table.name
        for table, column in spoilable()
        if is_free or not isinstance(column.type, Boolean)
    }
    assert set(written) == spoilt, spoilt - set(written)
    assert tables.workflow_instance.name in written
