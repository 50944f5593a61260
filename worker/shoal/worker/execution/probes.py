"""The worker's gRPC service for probes, which test whether a data source can be used from here.

A worker tests data sources, not the API, because it has the network, the drivers and the rights
that tasks have. The probe runs in a process below the launcher, as a task does.
"""

import asyncio
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import grpc.aio

from shoal.core.errors import ShoalError
from shoal.proto import shoal_pb2 as pb
from shoal.proto.data_sources import from_message
from shoal.proto.shoal_pb2_grpc import ProbeServiceServicer
from shoal.runtime.source_kinds import load_source_kind
from shoal.worker.logs.secret_forms import forms
from shoal.worker.processes.launcher import Launcher
from shoal.worker.processes.program import LaunchRequest, ProcessOutcome
from shoal.worker.processes.variables import base_environment
from shoal.worker.supervisor.shim.masks import Masker
from shoal.worker.types.child import outcome
from shoal.worker.types.child.kind import argv, is_kept_by_worker
from shoal.worker.types.child.probe import Probe
from shoal.worker.types.child.request import WorkRequest

PATIENCE_S = 20.0
AT_ONCE = 2  # probes; more of them wait
_LONGEST_ANSWER = 2_000  # bytes


class ProbeService(ProbeServiceServicer):
    """Tries data sources, each in a folder that is removed afterwards.

    A probe gets the variables of ``worker_env`` that a task gets, those of ``env_pass`` included.
    ``own_spark`` describes the worker's own Spark Connect servers. It blocks, and raises ShoalError
    if the worker cannot have any.
    """

    def __init__(
        self,
        launcher: Launcher,
        root: Path,
        worker_env: Mapping[str, str],
        env_pass: Sequence[str],
        own_spark: Callable[[], str],
    ) -> None:
        self._launcher, self._root = launcher, root
        self._env, self._env_pass = worker_env, env_pass
        self._own_spark = own_spark
        self._room = asyncio.Semaphore(AT_ONCE)

    async def Probe(  # noqa: N802 - the name is the contract's
        self,
        request: pb.ProbeRequest,
        context: grpc.aio.ServicerContext[pb.ProbeRequest, pb.ProbeResponse],
    ) -> pb.ProbeResponse:
        """Sign in, and ask which server it is."""
        began = time.monotonic()
        async with self._room:
            folder = self._root / f"probe-{uuid.uuid4().hex}"
            try:
                ok, text = await self._probe(request, folder)
            except (ShoalError, OSError, ValueError) as error:
                ok, text = False, f"on this worker: {error}"
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return pb.ProbeResponse(ok=ok, text=text, took_s=time.monotonic() - began)

    async def _probe(self, request: pb.ProbeRequest, folder: Path) -> tuple[bool, str]:
        source = from_message(request.name, request.data_source)
        kind = load_source_kind(source.kind)
        if is_kept_by_worker(source):
            return True, await asyncio.to_thread(self._own_spark)
        await asyncio.to_thread(folder.mkdir, 0o700, True)
        masks = forms([source.password] if source.password else [])
        asked = WorkRequest(
            work=kind.probe,
            task_type=f"{Probe.__module__}:{Probe.__qualname__}",
            params={"data_source": request.name},
            parameters={},
            task_instance_id=0,
            attempt=1,
            tag=folder.name,
            data_sources={request.name: source},
        )
        launched = await self._launcher.launch(
            LaunchRequest(
                id=folder.name,
                argv=argv(),
                env=base_environment(self._env, folder, self._env_pass),
                cwd=folder,
                log_path=folder / "log",
                record_path=folder / "record.json",
                journaled=False,
                stdin=asked.to_json(),
                timeout_s=PATIENCE_S,
                timeout_grace_s=1.0,
                masks=masks,
            )
        )
        record = await launched.wait()
        if record.outcome is ProcessOutcome.SUCCEEDED:
            return True, await asyncio.to_thread(_answer, folder / "log")
        reason = await asyncio.to_thread(outcome.read_reason, folder) or record.reason
        return False, Masker(masks).mask(reason)


def _answer(log: Path) -> str:
    with log.open(encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST_ANSWER).strip()
