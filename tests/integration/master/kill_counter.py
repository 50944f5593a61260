"""A worker's kill service that counts and never obeys, and its registration."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc

from shoal.coordination import Membership, ZkSession, layout
from shoal.core.settings import ClusterSettings
from shoal.proto import shoal_pb2 as pb
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import WorkerServiceServicer, add_WorkerServiceServicer_to_server
from shoal.proto.tls import TlsFiles


class KillCounter(WorkerServiceServicer):
    """How often a master asked for the end of each attempt."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()

    async def Kill(  # noqa: N802 - the name is the contract's
        self,
        request: pb.KillRequest,
        context: grpc.aio.ServicerContext[pb.KillRequest, pb.KillResponse],
    ) -> pb.KillResponse:
        self.asked.update(request.task_instance_ids)
        return pb.KillResponse(known=request.task_instance_ids)


@asynccontextmanager
async def kill_counter(
    cluster: ClusterSettings, session: ZkSession, worker_id: str
) -> AsyncIterator[KillCounter]:
    """Serve kills as ``worker_id``, a member of the cluster."""
    counter = KillCounter()
    server, address = await start_server(
        TlsFiles.of(cluster), lambda s: add_WorkerServiceServicer_to_server(counter, s)
    )
    try:
        about = {"address": address, "group": "default", "slots": 100, "running": 0}
        async with Membership(session, layout.WORKERS, worker_id, about):
            yield counter
    finally:
        await server.stop(None)
