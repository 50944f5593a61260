"""After a process that did not end well: its reason, and the end of what it has left elsewhere.

A query goes on in its database, an application in its cluster, when the process that has started
it is killed. The attempt is over only when that has ended, too: its task type names a program that
sees to it, which runs in a process of its own.
"""

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any

import structlog

from shoal.core.errors import ShoalError
from shoal.core.task_types import Settling, TaskContext, TaskType
from shoal.worker.attempts import Attempt
from shoal.worker.execution.attempt import ExitRecord, LaunchRequest, Outcome
from shoal.worker.execution.launching import Launcher
from shoal.worker.logs.last_line import last_line
from shoal.worker.results.results import made_permanent
from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.shim.masking import Masker

log = structlog.get_logger()

ONE_TRY_S = 20.0
ALL_TRIES_S = 45.0
PAUSE_S = 1.0
_RECORD_FILE = "settling.json"


@dataclass(frozen=True)
class AtWork:
    """What a task type works with, and the environment of its process."""

    task_type: TaskType[Any]
    context: TaskContext
    params: Any
    request: LaunchRequest


class Settler:
    """Completes the records of attempts that did not end well."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    async def complete(self, attempt: Attempt, record: ExitRecord, work: AtWork) -> ExitRecord:
        """Return ``record`` with a reason for people, when nothing of it goes on elsewhere.

        The reason is the task type's own, else the exit code and what the program has said last.

        If that cannot be made sure in ``ALL_TRIES_S``, the outcome is FAILED and the reason says
        so: KILLED is for what has ended.
        """
        reason, once, settling = await asyncio.to_thread(_of_its_type, work)
        if record.cause is EndCause.EXITED:
            if reason is None:
                reason = await asyncio.to_thread(_said, work.request, record.reason)
            record = replace(record, reason=Masker(attempt.masks).mask(reason))
        elif once is not None and record.outcome is Outcome.FAILED:
            told = Masker(attempt.masks).mask(f"{record.reason}; {once}")
            record = made_permanent(replace(record, reason=told))
        if settling is None:
            return record
        log.info("settling what the task has left elsewhere", task_instance=attempt.id)
        why = await self._settle(attempt, work)
        if why is None:
            return record
        reason = f"{record.reason}; it may still run elsewhere, since settling failed: {why}"
        return replace(record, outcome=Outcome.FAILED, reason=reason)

    async def _settle(self, attempt: Attempt, work: AtWork) -> str | None:
        """Return why it is not sure that nothing goes on elsewhere; None if it is."""
        deadline = time.monotonic() + ALL_TRIES_S
        why = "there was no time"
        for number in range(1, 1_000):
            if attempt.interrupted is not None or time.monotonic() >= deadline:
                break
            # Asked each time: where it ran may be gone by now.
            settling = await asyncio.to_thread(work.task_type.settling, work.context, work.params)
            if settling is None:
                return None
            try:
                why = await self._try(settling, work.request, f"{attempt.id}-settling-{number}")
            except ShoalError as error:
                why = str(error)
            if not why:
                return None
            await asyncio.sleep(PAUSE_S)
        return why

    async def _try(self, settling: Settling, request: LaunchRequest, name: str) -> str:
        """Run the program once; return why it failed, an empty text if it did not."""
        launched = await self._launcher.launch(
            replace(
                request,
                id=name,
                argv=list(settling.argv),
                stdin=settling.stdin,
                record_path=request.cwd / _RECORD_FILE,
                journaled=False,
                timeout_s=ONE_TRY_S,
                timeout_grace_s=0.0,
                context={},
                output_path=None,
            )
        )
        record = await launched.wait()
        return "" if record.outcome is Outcome.SUCCEEDED else record.reason


def _of_its_type(work: AtWork) -> tuple[str | None, str | None, Settling | None]:
    """Return why it failed, why no attempt may follow, and what ends it elsewhere."""
    task_type, folder = work.task_type, work.request.cwd
    once = task_type.not_repeatable(folder)
    return task_type.failure(folder), once, task_type.settling(work.context, work.params)


def _said(request: LaunchRequest, reason: str) -> str:
    """Return a reason with what the program has said last."""
    line = last_line(request.log_path)
    return f"{reason}: {line}" if line else reason
