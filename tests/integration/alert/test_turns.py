"""A project with thousands of due messages delays one of another project by one of its own."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, select

from shoal.core.alerts.shares import SHARES, share_of
from shoal.sql.schema.tables import alert_delivery, project
from tests.integration.alert.conftest import Site
from tests.support.servers.http_server import Received, answer, says

FLOOD = 5_000  # messages
BOUND = 20  # messages of the flood that may be taken before the other project's only one
PLACES = [f"c{number}" for number in range(2_000)]


async def due(site: Site, channels: Sequence[str], count: int, at: datetime) -> None:
    """Messages of a project that have been due since ``at``, all in one share."""
    async with site.database.unit_of_work() as uow:
        await uow.projects.ensure(site.project, at)
        found = await uow.connection.first(
            select(project.c.id).where(project.c.name == site.project)
        )
        assert found is not None
        rows = [
            {
                "project_id": found.id,
                "rule": f"rule{number}",
                "receiver": "ops",
                "channel": channel,
                "recipients": [],
                "kind": "TEST",
                "share": share_of(site.project, channel),
                "state": "PENDING",
                "due_at": at,
                "tries": 0,
                "created_at": at,
            }
            for number in range(-(-count // len(channels)))
            for channel in channels
        ]
        for start in range(0, len(rows), 500):
            some = rows[start : start + 500]
            await uow.connection.execute(insert(alert_delivery).values(some))
        await uow.commit()


def in_share(site: Site, share: int) -> list[str]:
    """Names of channels of a project that one job sends."""
    return [one for one in PLACES if share_of(site.project, one) == share]


async def slow(_: Received, writer: asyncio.StreamWriter) -> None:
    """A receiver that takes a second."""
    await asyncio.sleep(1.0)
    writer.write(answer(200, "ok"))


@pytest.mark.parametrize("receivers", [30, None], ids=["slow", "deleted"])
async def test_flood_of_one_project_delays_no_other(site: Site, receivers: int | None) -> None:
    share = SHARES // 2
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    channels = in_share(site, share)[: receivers or 1]
    for one in channels if receivers else []:
        site.sink.handlers[f"/{one}"] = slow
        await site.channel(one)
    await due(site, channels, FLOOD, long_ago)
    other = replace(site, project="q")
    [place] = in_share(other, share)[:1]
    site.sink.handlers["/q"] = says(answer(200, "ok"))
    await other.channel(place, options={"url": f"{site.sink.url}/q"})
    await due(other, [place], 1, long_ago + timedelta(minutes=1))

    async with site.server():
        await other.until(1, "/q")
        begun = [one for one in await site.deliveries() if one.tries]
    assert len(begun) <= BOUND
