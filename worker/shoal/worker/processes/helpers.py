"""Processes of the worker's own, for what blocks and needs drivers of storages.

They run in the launcher's hands as attempts do, so they die with the worker. A helper gets its
errand by standard input, and leaves what it has to say in ``ANSWER_FILE`` in its current folder.
"""

import asyncio
import re
import shutil
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shoal.core.errors import ShoalError
from shoal.worker.processes.launcher import Launcher, LaunchFailed
from shoal.worker.processes.program import ExitRecord, LaunchRequest, ProcessOutcome
from shoal.worker.processes.variables import base_environment
from shoal.worker.processes.work_files import ANSWER_FILE, make_folder
from shoal.worker.supervisor.causes import INTERRUPTIONS, EndCause

# Signing in at S3; Hadoop's clients have none of their own.
_OF_STORAGES = re.compile(r"AWS_[A-Z_]+|HTTPS?_PROXY|NO_PROXY|SSL_CERT_(FILE|DIR)", re.IGNORECASE)


@dataclass(frozen=True)
class Ended:
    """How a helper has ended. ``answer``: what it says; empty: nothing."""

    record: ExitRecord
    answer: str

    @property
    def is_well(self) -> bool:
        return self.record.outcome is ProcessOutcome.SUCCEEDED

    @property
    def why(self) -> str:
        """What it says, or how its process ended."""
        return self.answer or self.record.reason


class Helpers:
    """Starts helpers in folders of their own in ``work``, the folder of the attempts."""

    def __init__(self, work: Path, launcher: Launcher, worker_env: Mapping[str, str]) -> None:
        self._work, self._launcher, self._env = work, launcher, worker_env

    async def run(self, module: str, errand: str, *, name: str, timeout_s: float) -> Ended:
        """Run a module of ours to its end. ``name`` begins that of its folder.

        Cancelled, it is killed. Raises OSError and LaunchFailed, also where it was interrupted with
        the whole worker.
        """
        folder = self._work / f"{name}-{uuid.uuid4().hex}"
        await asyncio.to_thread(make_folder, folder)
        own = {name: value for name, value in self._env.items() if _OF_STORAGES.fullmatch(name)}
        # By this the next worker in this folder knows what a killed one has left.
        own["SHOAL_PARAMETERS"] = str(folder / "parameters.json")
        try:
            record = await self._ended(
                LaunchRequest(
                    id=folder.name,
                    argv=[sys.executable, "-P", "-m", module],
                    env={**base_environment(self._env, folder), **own},
                    cwd=folder,
                    log_path=folder / "log",
                    record_path=folder / "record.json",
                    journaled=False,
                    stdin=errand,
                    timeout_s=timeout_s,
                )
            )
            if record.cause in INTERRUPTIONS:  # it says nothing about what it was to do
                raise LaunchFailed(folder.name, record.reason, record.cause)
            return Ended(record, await asyncio.to_thread(_answer, folder))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _ended(self, request: LaunchRequest) -> ExitRecord:
        """Run a helper to its end. Cancelled, kill it, and return when it is dead."""
        try:
            return await (await self._launcher.launch(request)).wait()
        except asyncio.CancelledError:
            why, launcher = "no longer wanted", self._launcher
            with suppress(ShoalError):  # then all that the launcher ran is dead
                await launcher.kill(request.id, why, 0.0, EndCause.INTERRUPT)
                if (launched := launcher.running.get(request.id)) is not None:
                    await launched.wait()  # it writes into its folder until then
            raise


def _answer(folder: Path) -> str:
    try:
        return (folder / ANSWER_FILE).read_text(encoding="utf-8")
    except OSError:
        return ""
