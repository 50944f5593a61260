"""The worker's gRPC service for masters: end attempts."""

import grpc.aio
import structlog

from shoal.proto import shoal_pb2 as pb
from shoal.proto.shoal_pb2_grpc import WorkerServiceServicer
from shoal.worker.agent_attempts import Attempts
from shoal.worker.agent_runner import Runner

log = structlog.get_logger()

NO_REASON = "stopped by request"


class WorkerService(WorkerServiceServicer):
    """Answers at once; the processes end and are reported afterwards."""

    def __init__(self, attempts: Attempts, runner: Runner) -> None:
        self._attempts, self._runner = attempts, runner

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
