"""A worker's service for masters that counts and never obeys, and its registration."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import grpc

from shoal.coordination import Membership, ZkSession
from shoal.coordination.cluster import layout
from shoal.proto import shoal_pb2 as pb
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import WorkerServiceServicer, add_WorkerServiceServicer_to_server
from shoal.proto.tls import TlsFiles
from shoal.runtime.settings import ClusterSettings


class KillCounter(WorkerServiceServicer):
    """How often a master asked for the end of each attempt, and for what is left of it.

    Until a test says otherwise it answers as ``worker_id``, and as if it held everything.
    """

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.asked: Counter[int] = Counter()
        self.revoked: Counter[int] = Counter()
        self.free: set[int] = set()  # what it does not hold
        self.silent = False
        self.leave: Callable[[], Awaitable[None]]  # the cluster, but go on answering

    async def Kill(  # noqa: N802 - the name is the contract's
        self,
        request: pb.KillRequest,
        context: grpc.aio.ServicerContext[pb.KillRequest, pb.KillResponse],
    ) -> pb.KillResponse:
        self.asked.update(request.task_instance_ids)
        return pb.KillResponse(known=[i for i in request.task_instance_ids if i not in self.free])

    async def Revoke(  # noqa: N802 - the name is the contract's
        self,
        request: pb.RevokeRequest,
        context: grpc.aio.ServicerContext[pb.RevokeRequest, pb.RevokeResponse],
    ) -> pb.RevokeResponse:
        ids = [ref.task_instance_id for ref in request.attempts]
        self.revoked.update(ids)
        if self.silent:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "lost on the way")
        held = [i for i in ids if i not in self.free]
        return pb.RevokeResponse(worker_id=self.worker_id, held=held)


@asynccontextmanager
async def kill_counter(
    cluster: ClusterSettings, session: ZkSession, worker_id: str
) -> AsyncIterator[KillCounter]:
    """Serve as ``worker_id``, a member of the cluster."""
    counter = KillCounter(worker_id)
    server, address = await start_server(
        TlsFiles.of(cluster), lambda s: add_WorkerServiceServicer_to_server(counter, s)
    )
    try:
        about = {"address": address, "group": "default", "slots": 100, "running": 0}
        async with AsyncExitStack() as membership:
            member = Membership(session, layout.WORKERS, worker_id, about)
            await membership.enter_async_context(member)
            counter.leave = membership.aclose
            yield counter
    finally:
        await server.stop(None)
