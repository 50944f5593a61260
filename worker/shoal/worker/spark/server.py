"""One Spark Connect server: started, asked from time to time whether it answers, ended."""

import asyncio
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import grpc.aio
import structlog

from shoal.core.errors import ShoalError
from shoal.core.task_types import SparkConnect
from shoal.worker.logs.lines import last_line
from shoal.worker.processes.launcher import Launched, Launcher
from shoal.worker.processes.program import LaunchRequest
from shoal.worker.processes.work_files import make_folder
from shoal.worker.spark.command import Ports, Profile, launch_request, ports
from shoal.worker.spark.jobs import ServerJobs
from shoal.worker.types.spark.connect import USER

START_TIMEOUT_S = 120.0  # a JVM with Spark in it, on a machine that is busy with other things
LOOK_S = 0.1  # whether it has started
STOP_GRACE_S = 2.0
CHECK_TIMEOUT_S = 5.0
MOST_SILENT = 3  # checks in a row without an answer; a collection of garbage takes seconds
# Any answer shows that it is alive. This request is refused: it names no session.
_ANY_METHOD = "/spark.connect.SparkConnectService/Config"
_RELEASE = "/spark.connect.SparkConnectService/ReleaseSession"
_SILENCE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)

log = structlog.get_logger()


class SparkServerFailed(ShoalError):
    """A Spark Connect server of this worker could not be started."""


class SparkServerProcess:
    """The server of a project. Belongs to the event loop. ``folder`` is made, and removed."""

    def __init__(
        self,
        project: str,
        folder: Path,
        profile: Profile,
        launcher: Launcher,
        worker_env: Mapping[str, str],
    ) -> None:
        self.project, self.folder = project, folder
        self._profile, self._launcher, self._env = profile, launcher, worker_env
        self._token, self._jobs = secrets.token_urlsafe(32), ServerJobs()
        self._ports: Ports | None = None
        self._launched: Launched | None = None

    async def start(self) -> SparkConnect:
        """Return when it listens. Raises SparkServerFailed, CannotRun, OSError.

        Nothing of it is left then.
        """
        began = time.monotonic()
        try:
            self._launched = await self._launcher.launch(await asyncio.to_thread(self._request))
            async with asyncio.timeout(START_TIMEOUT_S):
                found = self._ports = await self._listening()
        except TimeoutError:
            await self.stop(f"it did not start within {START_TIMEOUT_S:g} s")
            raise SparkServerFailed(
                f"the worker's Spark Connect server did not start within {START_TIMEOUT_S:g} s"
            ) from None
        except BaseException:
            await self.stop("it did not start")
            raise
        took_s = round(time.monotonic() - began, 1)
        where = {"port": found.connect, "pages": found.pages}
        log.info("Spark Connect server started", project=self.project, **where, took_s=took_s)
        return SparkConnect(found.connect, self._token)

    async def over(self) -> str:
        """Return how it ended, once nothing of it is left."""
        assert self._launched is not None
        try:
            return (await self._launched.wait()).reason
        except ShoalError as died:
            return str(died)

    async def answers(self) -> bool:
        """Return whether it answers on its port."""
        return await self._call(_ANY_METHOD, b"") not in _SILENCE

    async def end_jobs(self, is_left: Callable[[str], bool]) -> None:
        """End what it works on for sessions of which ``is_left`` says so.

        That is what Spark has begun for statements that were interrupted; see ``jobs``. A failure
        is logged; the next call tries again.
        """
        assert self._ports is not None
        port = self._ports.pages
        try:
            running = await asyncio.to_thread(self._jobs.running, port)
            for number in (left := [one for one, of in running.items() if is_left(of)]):
                await asyncio.to_thread(self._jobs.end, port, number)
        except (OSError, ValueError, LookupError) as error:
            log.warning("jobs of a Spark Connect server are not known", error=str(error))
            return
        if left:
            log.info("jobs ended that no task waits for", project=self.project, jobs=left)

    async def release(self, session: str) -> None:
        """Close a session, if it is there; what runs in it ends. No failure is reported."""
        # ReleaseSessionRequest of Spark's base.proto: session_id = 1, user_context = 2, of which
        # user_id = 1. The agent imports nothing of PySpark.
        user = _field(1, USER.encode())
        await self._call(_RELEASE, _field(1, session.encode()) + _field(2, user))

    async def _call(self, method: str, request: bytes) -> grpc.StatusCode:
        assert self._ports is not None
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._ports.connect}") as channel:
            try:
                await channel.unary_unary(method, None, None)(
                    request,
                    timeout=CHECK_TIMEOUT_S,
                    metadata=(("authorization", f"Bearer {self._token}"),),
                )
            except grpc.aio.AioRpcError as error:
                return error.code()
        return grpc.StatusCode.OK

    async def stop(self, reason: str, grace_s: float = STOP_GRACE_S) -> None:
        """End it; return when nothing of it is left."""
        if self._launched is not None:
            await self._launcher.kill(self.folder.name, reason, grace_s)
            await self.over()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    def _request(self) -> LaunchRequest:
        make_folder(self.folder)
        conf = self._jobs.conf
        return launch_request(self.folder, self._profile, self._token, conf, self._env)

    async def _listening(self) -> Ports:
        assert self._launched is not None
        while not self._launched.is_over:
            if (found := await asyncio.to_thread(ports, self.folder)) is not None:
                return found
            await asyncio.sleep(LOOK_S)
        said = await asyncio.to_thread(last_line, self.folder / "log")
        raise SparkServerFailed(
            f"the worker's Spark Connect server did not start: {said or await self.over()}"
        )


def _field(number: int, value: bytes) -> bytes:
    """Return a field of a Protocol Buffers message that is a text, or a message."""
    assert len(value) < 128
    return bytes((number << 3 | 2, len(value))) + value
