"""The worker's gRPC service for masters: end attempts."""

import asyncio

import grpc.aio
import structlog

from shoal.coordination import TaskQueue
from shoal.coordination.errors import CoordinationError
from shoal.proto import shoal_pb2 as pb
from shoal.proto.shoal_pb2_grpc import WorkerServiceServicer
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.execution.runner import CLAIM_GONE, Runner
from shoal.worker.intake.eager_dispatch import EagerDispatch

log = structlog.get_logger()

NO_REASON = "stopped by request"
CHECK_S = 0.5  # for ZooKeeper's answer: masters do not wait long for ours


class WorkerService(WorkerServiceServicer):
    """Answers at once; the processes end and are reported afterwards."""

    def __init__(
        self,
        worker_id: str,
        queue: TaskQueue,
        attempts: HeldAttempts,
        runner: Runner,
        eager_dispatch: EagerDispatch,
    ) -> None:
        self._worker_id, self._queue = worker_id, queue
        self._attempts, self._runner, self._eager_dispatch = attempts, runner, eager_dispatch

    async def Kill(  # noqa: N802 - the name is the contract's
        self,
        request: pb.KillRequest,
        context: grpc.aio.ServicerContext[pb.KillRequest, pb.KillResponse],
    ) -> pb.KillResponse:
        """End attempts, also those that are claimed but have not started."""
        known = []
        for task_instance_id in request.task_instance_ids:
            attempt = self._attempts.get(task_instance_id)
            if attempt is not None:
                known.append(task_instance_id)
                await self._runner.kill(attempt, request.reason or NO_REASON)
        log.info("kill requested", task_instances=list(request.task_instance_ids), known=known)
        return pb.KillResponse(known=known)

    async def Revoke(  # noqa: N802 - the name is the contract's
        self,
        request: pb.RevokeRequest,
        context: grpc.aio.ServicerContext[pb.RevokeRequest, pb.RevokeResponse],
    ) -> pb.RevokeResponse:
        """End attempts whose claims are gone; return which of all asked for are held still."""
        answer = pb.RevokeResponse(worker_id=self._worker_id)
        if request.worker_id != self._worker_id:
            return answer
        found = (self._attempts.get(ref.task_instance_id) for ref in request.attempts)
        for attempt in await self._unclaimed([a for a in found if a is not None]):
            log.warning("claim is gone, ending the task", task_instance=attempt.id)
            self._runner.interrupt(attempt, CLAIM_GONE)
        failpoints.hit("revoke.before_reply")
        # No grant is awaited: what is not held now is refused from now on.
        for ref in request.attempts:
            if self._attempts.get(ref.task_instance_id) is not None:
                answer.held.append(ref.task_instance_id)
            else:
                self._eager_dispatch.refuse(ref)
        return answer

    async def _unclaimed(self, held: list[HeldAttempt]) -> list[HeldAttempt]:
        """Return those of ``held`` that live without a claim. None if ZooKeeper cannot be asked."""
        live = [a for a in held if not a.over.is_set() and not self._eager_dispatch.is_coming(a.id)]
        try:
            async with asyncio.timeout(CHECK_S):
                standing = await self._queue.standing([attempt.claim for attempt in live])
        except (CoordinationError, TimeoutError) as error:
            log.info("claims not checked", error=str(error) or "no answer in time")
            return []
        return [a for a in live if a.claim not in standing and not a.over.is_set()]
