"""After a process that did not end well: its reason, and the end of what it has left elsewhere.

A query goes on in its database, an application in its cluster, when the process that has started
it is killed. The attempt is over only when that has ended, too: its task type names a program that
sees to it, which runs in a process of its own.
"""

import asyncio
import time
from dataclasses import replace

import structlog

from shoal.core.errors import ShoalError
from shoal.core.task_types import Settling
from shoal.worker.attempts.held import AtWork, HeldAttempt
from shoal.worker.logs.lines import last_line
from shoal.worker.processes.environment import NOT_REACHED
from shoal.worker.processes.launcher import Launcher
from shoal.worker.processes.program import ExitRecord, LaunchRequest, ProcessOutcome
from shoal.worker.results.error_line import plain, with_line
from shoal.worker.results.results import is_not_yet, made_permanent
from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.shim.masks import Masker

log = structlog.get_logger()

ONE_TRY_S = 20.0
ALL_TRIES_S = 45.0
PAUSE_S = 1.0
_RECORD_FILE = "settling.json"


class Settler:
    """Completes the records of attempts that did not end well."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    async def complete(self, attempt: HeldAttempt, record: ExitRecord, work: AtWork) -> ExitRecord:
        """Return ``record`` with a reason for people, when nothing of it goes on elsewhere.

        The reason is the task type's own, else the exit code and what the program has said last.
        The task type's own is the error line, too.
        A program that its setup did not reach has left nothing.

        If that cannot be made sure in ``ALL_TRIES_S``, or fails permanently, the outcome is FAILED
        and the reason says so: KILLED is for what has ended.
        """
        reason, told, once, settling = await asyncio.to_thread(_of_its_type, work, record.reason)
        if record.cause is EndCause.EXITED:
            record = replace(record, reason=Masker(attempt.launch.masks).mask(reason))
            if told and not is_not_yet(record):
                record = with_line(record, plain(told.split("\n", 1)[0], attempt.launch.masks))
        if is_not_yet(record):
            again_s = await asyncio.to_thread(work.task_type.again_s, work.request.cwd)
            record = replace(record, context={**record.context, "again_s": again_s})
        elif once is not None and record.outcome is ProcessOutcome.FAILED:
            told = Masker(attempt.launch.masks).mask(f"{record.reason}; {once}")
            record = made_permanent(replace(record, reason=told))
        if settling is None:
            return record
        log.info("settling what the task has left elsewhere", task_instance=attempt.id)
        why = await self._settle(attempt, work)
        if why is None:
            return record
        reason = f"{record.reason}; it may still run elsewhere, since settling failed: {why}"
        # Of a look, too: no other one may begin beside what it has left.
        known = {**record.context, "not_yet_exit_code": None}
        return replace(record, outcome=ProcessOutcome.FAILED, reason=reason, context=known)

    async def _settle(self, attempt: HeldAttempt, work: AtWork) -> str | None:
        """Return why it is not sure that nothing goes on elsewhere; None if it is."""
        deadline = time.monotonic() + ALL_TRIES_S
        why, tries = "there was no time", 0
        for number in range(1, 1_000):
            if attempt.end.interrupted is not None or time.monotonic() >= deadline:
                break
            # Asked each time: where it ran may be gone by now.
            settling = await asyncio.to_thread(work.task_type.settling, work.context, work.params)
            if settling is None:
                return None
            tries, is_permanent = number, False
            try:
                record = await self._try(settling, work, f"{attempt.id}-settling-{number}")
            except ShoalError as error:
                why = str(error)
            else:
                if record.outcome is ProcessOutcome.SUCCEEDED:
                    return None
                why = record.reason
                is_permanent = record.exit_code in work.task_type.permanent_exit_codes
            if is_permanent:
                break
            await asyncio.sleep(PAUSE_S)
        log.warning("settling failed", task_instance=attempt.id, tries=tries, reason=why)
        return why

    async def _try(self, settling: Settling, work: AtWork, name: str) -> ExitRecord:
        """Run the program once. Raises ShoalError if it cannot be started."""
        request, argv = work.request, settling.argv
        launched = await self._launcher.launch(
            replace(
                request,
                id=name,
                argv=list(argv) if work.setup is None else work.setup.argv(argv),
                stdin=settling.stdin,
                record_path=request.cwd / _RECORD_FILE,
                journaled=False,
                timeout_s=ONE_TRY_S,
                timeout_grace_s=0.0,
                context={},
                output_path=None,
            )
        )
        return await launched.wait()


async def confirmed(record: ExitRecord, work: AtWork) -> ExitRecord:
    """Return ``record``, as a failure if the program was not reached: that is not a success."""
    if record.outcome is not ProcessOutcome.SUCCEEDED or work.setup is None:
        return record
    if await asyncio.to_thread(work.setup.failure) is None:
        return record
    return replace(record, outcome=ProcessOutcome.FAILED, reason=NOT_REACHED)


def _of_its_type(work: AtWork, reason: str) -> tuple[str, str | None, str | None, Settling | None]:
    """Return why a program has failed, whose end gives ``reason``, and what follows from it.

    Beside the reason that is what its type itself says of it, why no attempt may follow, and what
    ends its work elsewhere.
    """
    if work.setup is not None and (failure := work.setup.failure()) is not None:
        return f"{failure}: {_said(work.request, reason)}", None, None, None
    task_type, folder = work.task_type, work.request.cwd
    once = task_type.not_repeatable(folder)
    told = task_type.failure(folder)
    reason = _said(work.request, reason) if told is None else told
    return reason, told, once, task_type.settling(work.context, work.params)


def _said(request: LaunchRequest, reason: str) -> str:
    """Return a reason with what the program has said last."""
    line = last_line(request.log_path)
    return f"{reason}: {line}" if line else reason
