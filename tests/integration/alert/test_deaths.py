"""Alert servers that die, channels that are dead: nothing is lost, little is said twice (R31)."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.alert.conftest import Site
from tests.support.servers.http_server import Received, answer, says
from tests.support.waiting import DEADLINE_S

PROGRAM = """\
import asyncio, json, structlog, sys
from shoal.alert.main import serve
from shoal.alert.settings import AlertSettings
from shoal.runtime.settings import ClusterSettings
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
cluster, settings = json.loads(sys.argv[1])
asyncio.run(serve(AlertSettings(**settings), ClusterSettings(**cluster)))
"""
ALERTS = 1_000
KILLS = 4


@contextmanager
def process(site: Site, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An alert server in a process of its own."""
    settings = {"poll_s": 0.05, "http_allow": "127.0.0.0/8", "at_once": 10}
    given = site.cluster.model_dump(mode="json", exclude_none=True), settings
    with (folder / f"alert-{len(list(folder.iterdir()))}.err").open("wb") as log:
        started = subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps(given)], stderr=log)
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.wait()


async def test_servers_are_killed_and_all_alerts_arrive(site: Site, tmp_path: Path) -> None:
    async def slow(received: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.02)
        writer.write(answer(200))
        await writer.drain()

    site.sink.handlers["/hook"] = slow
    await site.channel(per_minute=6000)
    await site.receiver()
    await site.rule()
    logs = tmp_path / "logs"
    logs.mkdir()
    servers = [process(site, logs), process(site, logs)]
    running = [one.__enter__() for one in servers]
    try:
        kills = 0
        for number in range(ALERTS):
            await site.fails(f"w{number}", run=number + 1)
            if number % 200 == 199 and kills < KILLS:
                # The one that sends, so that messages are under way.
                await site.until(1)
                victim = kills % 2
                os.kill(running[victim].pid, signal.SIGKILL)
                running[victim].wait()
                servers[victim] = process(site, logs)
                running[victim] = servers[victim].__enter__()
                kills += 1
        async with asyncio.timeout(3 * DEADLINE_S):
            while sum(one.told_at is not None for one in await site.alerts()) < ALERTS:
                await asyncio.sleep(0.2)
        await site.settled()
    finally:
        for one in servers:
            one.__exit__(None, None, None)
    assert kills == KILLS
    # A message lists its newest alerts alone; which ones it is about is stored.
    came = Counter(facts["key"].rpartition("-")[2] for facts in site.got())
    assert max(came.values()) <= 2
    deliveries = await site.deliveries()
    assert {one.state for one in deliveries} == {"SENT"}
    assert {str(one.id) for one in deliveries} == came.keys()
    alerts = await site.alerts()
    assert len(alerts) == ALERTS
    async with site.database.unit_of_work(read_only=True) as uow:
        for alert in alerts:
            assert len(await uow.deliveries.of_alert(alert.id)) == 1


def counted(messages: list[Any]) -> Counter[int]:
    """How often each alert was told of."""
    return Counter(alert["id"] for facts in messages for alert in facts["alerts"])


async def test_a_message_under_way_at_a_death_is_sent_again(ready: Site, tmp_path: Path) -> None:
    release = asyncio.Event()

    async def hang(received: Received, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(answer(200))
        await writer.drain()

    ready.sink.handlers["/hook"] = hang
    with process(ready, tmp_path) as first:
        await ready.fails(run=1)
        await ready.until(1)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    [delivery] = await ready.deliveries()
    assert delivery.state == "SENDING"
    release.set()
    async with ready.server():
        found = await ready.until(2)
        [delivery] = await ready.settled()
    assert (delivery.state, delivery.tries) == ("SENT", 2)
    assert found[0]["key"] == found[1]["key"]


async def test_a_dead_channel_holds_up_no_other(site: Site) -> None:
    async def never(received: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    site.sink.handlers |= {"/dead": never, "/live": says(answer(200))}
    await site.channel("dead")
    await site.channel("live")
    await site.receiver("dead", {"channel": "dead"})
    await site.receiver("live", {"channel": "live"})
    await site.rule("one", receivers=["dead"])
    await site.rule("two", receivers=["live"])
    async with site.server(at_once=2):
        for number in range(20):
            await site.fails(f"w{number}", run=number + 1)
            await asyncio.sleep(0.1)
        async with asyncio.timeout(DEADLINE_S):
            while len(counted(site.got("/live"))) < 20:
                await asyncio.sleep(0.05)
        assert 0 < len(site.got("/dead")) <= 2


async def test_a_channel_that_fails_is_tried_again_later(ready: Site) -> None:
    ready.sink.handlers["/hook"] = says(answer(503, "down"), answer(200, "ok"))
    async with ready.server():
        await ready.fails(run=1)
        [delivery] = await ready.settled()
    assert (delivery.state, delivery.tries, len(ready.got())) == ("SENT", 2, 2)
    async with ready.database.unit_of_work(read_only=True) as uow:
        tries = await uow.deliveries.tries(delivery.id)
    assert [(one.number, one.is_sent, one.answer) for one in tries] == [
        (1, False, "503 down"),
        (2, True, "200 ok"),
    ]


async def test_what_cannot_be_sent_is_given_up_with_the_reason(ready: Site) -> None:
    ready.sink.handlers["/hook"] = says(answer(404, "nobody here"))
    async with ready.server():
        await ready.fails(run=1)
        [delivery] = await ready.settled()
    assert (delivery.state, delivery.tries) == ("FAILED", 1)
    assert delivery.answer == "404 nobody here"


async def test_a_storm_is_few_messages(ready: Site) -> None:
    group_for_s = 3
    await ready.rule(group_for=group_for_s)
    began = time.monotonic()
    async with ready.server():
        for part in range(10):
            await ready.happens(
                *(
                    {
                        "workflow": f"w{part * 1000 + n}",
                        "state": "FAILED",
                        "run": part * 1000 + n + 1,
                    }
                    for n in range(1000)
                )
            )
        async with asyncio.timeout(3 * DEADLINE_S):
            while sum(facts["total"] for facts in ready.got()) < 10_000:
                await asyncio.sleep(0.1)
        found = await ready.settled()
    # One at once, then one for each such time: slow machines need longer for so many events.
    assert len(found) <= 2 + (time.monotonic() - began) / group_for_s
    assert len(found) < 100
    assert all(len(facts["alerts"]) <= 50 for facts in ready.got())


async def test_secrets_of_channels_are_opened_when_a_message_leaves(site: Site) -> None:
    await site.secret("where", f"{site.sink.url}/hook")
    await site.channel(options={"url_secret": "where"})
    await site.channel("lost", options={"url_secret": "missing"})
    await site.receiver("ops", {"channel": "hook"}, {"channel": "lost"})
    await site.rule()
    async with site.server():
        await site.fails(run=1)
        found = {one.channel: one for one in await site.settled(2)}
    assert found["hook"].state == "SENT"
    assert "the project p has no secret missing" in str(found["lost"].answer)


async def test_a_channel_sends_so_many_a_minute(ready: Site) -> None:
    limit = 3
    await ready.channel(per_minute=limit)
    async with ready.server():
        for number in range(limit):
            await ready.fails(f"w{number}", run=number + 1)
            await ready.until(number + 1)
        await ready.fails("more", run=99)
        async with asyncio.timeout(DEADLINE_S):
            while len(found := await ready.deliveries()) <= limit:
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # many looks
        assert (len(ready.got()), found[-1].state) == (limit, "PENDING")
