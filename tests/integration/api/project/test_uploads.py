"""Uploads over a real connection that stall or break off."""

import asyncio
import socket
from pathlib import Path

from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api
from tests.support.waiting import DEADLINE_S

PLACE = f"{PREFIX}/projects/stalls/resource-contents/x"


async def send(api: Api) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send most of a file."""
    await api.make("stalls")
    url = api.client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = (
        f"PUT {PLACE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n"
        f"Authorization: Bearer {api.services.token}\r\n\r\n"
    )
    writer.write(head.encode() + bytes(3_000_000))
    await writer.drain()
    return reader, writer


def objects(cluster: ClusterSettings) -> list[Path]:
    return list(Path(cluster.resources).glob("*/stalls/*"))


async def test_upload_that_stalls_is_told_so_and_leaves_nothing(
    live: Api, cluster: ClusterSettings
) -> None:
    live.services.files.stalled_s = 0.3
    reader, writer = await send(live)
    async with asyncio.timeout(DEADLINE_S):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    writer.close()
    assert objects(cluster) == []
    await no_versions(live)


async def test_upload_that_breaks_off_leaves_nothing(live: Api, cluster: ClusterSettings) -> None:
    _, writer = await send(live)
    async with asyncio.timeout(DEADLINE_S):
        while not objects(cluster):
            await asyncio.sleep(0.02)
        writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        writer.close()
        while objects(cluster):
            await asyncio.sleep(0.02)
    await no_versions(live)


async def no_versions(api: Api) -> None:
    async with api.services.store.unit_of_work(read_only=True) as uow:
        assert await uow.resources.versions("stalls", "x") == []
