"""A worker's log and progress services over real gRPC with mutual TLS, registered in ZooKeeper.

Holds logs in memory; the rest of a worker is left out.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from shoal.api.services import Services
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.membership import Membership
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2 import (
    DownloadRequest,
    FollowRequest,
    LogChunk,
    LogRef,
    ProbeRequest,
    ProbeResponse,
    ProgressRequest,
    ProgressResponse,
    TaskProgress,
    ViewRequest,
    ViewResponse,
)
from shoal.proto.shoal_pb2_grpc import (
    LogServiceServicer,
    ProbeServiceServicer,
    ProgressServiceServicer,
    add_LogServiceServicer_to_server,
    add_ProbeServiceServicer_to_server,
    add_ProgressServiceServicer_to_server,
)
from shoal.proto.tls import TlsFiles
from shoal.runtime.settings import ClusterSettings
from tests.support.waiting import DEADLINE_S

MOST_BYTES = 1024 * 1024
CHUNK = 1000
Address = tuple[str, str, int, int]


@dataclass
class FakeLog:
    """One log that a test writes."""

    data: bytes = b""
    finished: bool = False
    promised: int = 0  # bytes that are announced but missing: the file was cut short
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def write(self, data: bytes, *, finished: bool = False) -> None:
        """Append, and tell the followers."""
        async with self.changed:
            self.data += data
            self.finished = self.finished or finished
            self.changed.notify_all()


class FakeWorker(LogServiceServicer, ProgressServiceServicer, ProbeServiceServicer):
    """Serves the logs in ``logs`` and what is in ``progress``."""

    def __init__(self) -> None:
        self.progress: dict[int, TaskProgress] = {}
        self.logs: dict[Address, FakeLog] = {}
        self.address = ""
        self.server: grpc.aio.Server

    def log(self, task: dict[str, Any]) -> FakeLog:
        """Return the log of a task instance as the API shows it, made if it is missing."""
        address = (task["project"], task["workflow"], task["workflow_instance_id"], task["id"])
        return self.logs.setdefault(address, FakeLog())

    async def _find(self, ref: LogRef, context: Any) -> FakeLog:
        address = (ref.project, ref.workflow, ref.workflow_instance_id, ref.task_instance_id)
        if address not in self.logs:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no log of {ref.task_instance_id} here")
        return self.logs[address]

    async def View(self, request: ViewRequest, context: Any) -> ViewResponse:  # noqa: N802  # gRPC's name
        """Return a range."""
        found = await self._find(request.log, context)
        size = len(found.data)
        start = min(size, request.offset) if request.offset >= 0 else max(0, size + request.offset)
        data = found.data[start : start + min(request.limit, MOST_BYTES)]
        return ViewResponse(
            data=data, offset=start, size=size + found.promised, finished=found.finished
        )

    async def Follow(self, request: FollowRequest, context: Any) -> AsyncIterator[LogChunk]:  # noqa: N802  # gRPC's name
        """Stream until the log is finished."""
        found = await self._find(request.log, context)
        offset = request.offset
        while True:
            async with found.changed:
                await found.changed.wait_for(
                    lambda: len(found.data) > offset or found.finished  # noqa: B023
                )
                data, over = found.data[offset : offset + CHUNK], found.finished
            if data:
                yield LogChunk(data=data, offset=offset)
                offset += len(data)
            elif over:
                return

    async def Download(self, request: DownloadRequest, context: Any) -> AsyncIterator[LogChunk]:  # noqa: N802  # gRPC's name
        """Stream what there is."""
        found = await self._find(request.log, context)
        for offset in range(0, len(found.data), CHUNK):
            yield LogChunk(data=found.data[offset : offset + CHUNK], offset=offset)

    async def Read(self, request: ProgressRequest, context: Any) -> ProgressResponse:  # noqa: N802  # gRPC's name
        """Return what is known of those that are asked about."""
        asked = request.task_instance_ids
        return ProgressResponse(tasks=[self.progress[n] for n in asked if n in self.progress])

    async def Probe(self, request: ProbeRequest, context: Any) -> ProbeResponse:  # noqa: N802  # gRPC's name
        """Say that a data source can be used."""
        return ProbeResponse(ok=True, text=f"{request.name} answers", took_s=0.1)

    def register(self, server: grpc.aio.Server) -> None:
        """Add its services to a server."""
        add_LogServiceServicer_to_server(self, server)
        add_ProgressServiceServicer_to_server(self, server)
        add_ProbeServiceServicer_to_server(self, server)

    async def stop(self) -> None:
        """Go away without a word."""
        await self.server.stop(None)


@asynccontextmanager
async def fake_worker(
    services: Services, cluster: ClusterSettings, worker_id: str = "w1", **told: Any
) -> AsyncIterator[FakeWorker]:
    """Run a worker that is registered as ``worker_id`` and seen by the API."""
    worker = FakeWorker()
    worker.server, worker.address = await start_server(TlsFiles.of(cluster), worker.register)
    about = {"address": worker.address, "group": "default", "slots": 4, "running": 1, **told}
    try:
        async with Membership(services.cluster.session, layout.WORKERS, worker_id, about):
            await seen(services, worker_id, present=True)
            yield worker
        await seen(services, worker_id, present=False)
    finally:
        await worker.stop()


async def seen(services: Services, worker_id: str, *, present: bool) -> None:
    """Return when the API sees, or no longer sees, the worker."""
    async with asyncio.timeout(DEADLINE_S):
        async for view in services.cluster.workers.changes():
            if (worker_id in view) is present:
                return
