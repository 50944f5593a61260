"""What one attempt has of the Spark Connect servers of its worker."""

import asyncio
from pathlib import Path

from shoal.core.task_types import SparkConnect
from shoal.proto import shoal_pb2 as pb
from shoal.worker.attempts.held import HeldAttempt
from shoal.worker.logs.lines import append_line
from shoal.worker.logs.secret_forms import forms
from shoal.worker.spark.servers import SparkServers
from shoal.worker.types.spark.connect import session_id

_WAITING = "shoal: waiting for the Spark Connect server that this worker keeps for the project"


class SparkOfAttempt:
    """See ``execution.context.SparkAccess``."""

    def __init__(
        self, servers: SparkServers, attempt: HeldAttempt, payload: pb.Payload, log_path: Path
    ) -> None:
        self._servers, self._attempt = servers, attempt
        self._payload, self._log_path = payload, log_path

    async def connect(self) -> SparkConnect:
        """See TaskContext.spark_connect. The token is masked in the log from now on."""
        project = self._payload.project
        if not self._servers.is_ready(project):
            await asyncio.to_thread(append_line, self._log_path, _WAITING)
        session = session_id(self._payload.tag, self._payload.attempt)
        server = await self._servers.use(self._attempt, project, session)
        self._attempt.launch.masks = [*self._attempt.launch.masks, *forms([server.token])]
        return server

    @property
    def server(self) -> SparkConnect | None:
        """See TaskContext.spark."""
        return self._servers.used_by(self._attempt)
