"""How attempts end: with a result, without one, or before they have begun.

A *result* is stored durably and reported until a master has answered. After an *interruption*
(session lost, worker stopped, launcher dead) the claim is dropped, and the master declares the
attempt LOST. What could not begin here is queued again.
"""

import asyncio
import time
from dataclasses import replace

import structlog
from pydantic import ValidationError

from shoal.core.errors import ShoalError
from shoal.proto import shoal_pb2 as pb
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.intake.held_claims import HeldClaims
from shoal.worker.intake.prefetch import Waiting
from shoal.worker.intake.starts import StartGuard
from shoal.worker.logs.lines import append_line
from shoal.worker.processes.program import ExitRecord, ProcessOutcome
from shoal.worker.results.cleanup import Cleaner
from shoal.worker.results.error_line import with_error_line
from shoal.worker.results.facilities import Facilities
from shoal.worker.results.reporter import Reporter
from shoal.worker.results.requeue import Requeuer
from shoal.worker.results.results import (
    as_json,
    describe,
    is_not_yet,
    reason_for_people,
    result,
    was_interrupted,
    with_outputs,
    without_process,
)
from shoal.worker.results.settlement import Settler, confirmed
from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.shim.masks import Masker

log = structlog.get_logger()


class Endings:
    """Ends attempts whose processes have ended, or that have none. Belongs to the event loop."""

    def __init__(
        self,
        facilities: Facilities,
        attempts: HeldAttempts,
        reporter: Reporter,
        starts: StartGuard,
        settler: Settler,
        cleaner: Cleaner,
        requeuer: Requeuer,
        claims: HeldClaims,
    ) -> None:
        self._facilities, self._attempts, self._reporter = facilities, attempts, reporter
        self._starts, self._claims = starts, claims
        self._settler, self._cleaner, self._requeuer = settler, cleaner, requeuer

    async def take_record(self, attempt: HeldAttempt, record: ExitRecord) -> None:
        """Make a result, or not, of an attempt that the launcher has stored the end of."""
        await self._facilities.log_limit.finish(attempt, record.log_bytes)
        if attempt.over.is_set():
            return
        if was_interrupted(record):
            await self.abandon(attempt, record.reason)
            return
        if attempt.end.type_failure is not None:
            record = replace(record, outcome=ProcessOutcome.FAILED, reason=attempt.end.type_failure)
        if attempt.launch.at_work is not None:
            record = await confirmed(record, attempt.launch.at_work)
        if record.outcome is not ProcessOutcome.SUCCEEDED and attempt.launch.at_work is not None:
            record = await self._settler.complete(attempt, record, attempt.launch.at_work)
            if attempt.over.is_set():
                return
        elif record.output_count:
            record = await asyncio.to_thread(with_outputs, record, attempt, self._facilities.spool)
            if attempt.over.is_set():
                return
        handed_over = await self._hand_over(attempt, record)
        if handed_over is None:
            return
        record = await with_error_line(handed_over, self._facilities.store, attempt.launch.masks)
        if attempt.over.is_set():
            return
        failpoints.hit("record.after_exit")
        self._attempts.end(attempt, succeeded=record.outcome is ProcessOutcome.SUCCEEDED)
        if not record.durable:
            # Reported all the same, until a master has it; if this agent dies before that, the
            # claim is gone and the attempt is LOST: run again, not forgotten.
            log.error("result not stored", task_instance=attempt.id, reason=record.reason)
        self._reporter.add(*result(record))
        log.info(
            "task ended",
            task_instance=attempt.id,
            outcome="RESCHEDULED" if is_not_yet(record) else record.outcome.value,
            reason=reason_for_people(record),
            took_s=round(record.finished_at - record.started_at, 3),
        )

    async def _hand_over(self, attempt: HeldAttempt, record: ExitRecord) -> ExitRecord | None:
        """Return the record when the files of the attempt are handed over; None: it is over."""
        if attempt.launch.publications and record.outcome is ProcessOutcome.SUCCEEDED:
            record = await self._facilities.publisher.complete(attempt, record)
            if attempt.over.is_set():
                return None
            if was_interrupted(record):
                await self.abandon(attempt, record.reason)
                return None
        return record

    async def fail(self, attempt: HeldAttempt, payload: pb.Payload, error: BaseException) -> None:
        """The attempt failed before it had a process: say why, in its log, too."""
        reason = Masker(attempt.launch.masks).mask(describe(error))
        if not isinstance(error, ShoalError | ValidationError | OSError):
            log.warning("task type raised", task_instance=attempt.id, exc_info=error)
        try:
            await asyncio.to_thread(
                append_line, self._facilities.log_path(payload), f"shoal: {reason}"
            )
        except OSError as trouble:
            log.warning("log not written", task_instance=attempt.id, error=str(trouble))
        await self.conclude(attempt, ProcessOutcome.FAILED, EndCause.NOT_STARTED, reason)

    async def conclude_killed(self, attempt: HeldAttempt, reason: str) -> None:
        """End an attempt that has no process with the result KILLED."""
        await self.conclude(attempt, ProcessOutcome.KILLED, EndCause.KILL, reason)

    async def conclude(
        self,
        attempt: HeldAttempt,
        outcome: ProcessOutcome,
        cause: EndCause,
        reason: str,
        exit_code: int | None = None,
    ) -> None:
        """Store and report the result of an attempt that has no process."""
        if attempt.over.is_set():
            return
        worker_id = self._facilities.worker_id
        record = without_process(worker_id, attempt, outcome, cause, reason, exit_code)
        handed_over = await self._hand_over(attempt, record)
        if handed_over is None:
            return
        record = handed_over
        self._attempts.end(attempt)
        try:
            await asyncio.to_thread(self._facilities.spool.write, record.id, as_json(record))
        except OSError as error:
            # Reported all the same; if this agent dies before, the master finds the claim gone.
            log.error("result not stored", task_instance=attempt.id, error=str(error))
        self._reporter.add(*result(record))
        log.info(
            "task ended without a process",
            task_instance=attempt.id,
            outcome=outcome.value,
            reason=reason_for_people(record),
        )

    async def abandon(self, attempt: HeldAttempt, why: str) -> None:
        """End without a result: the claim goes, and with it the attempt is LOST."""
        log.warning("task interrupted", task_instance=attempt.id, why=why)
        await self._facilities.log_limit.finish(attempt, 0)
        self._attempts.end(attempt)
        self._reporter.drop_start(attempt.id)
        await self._cleaner.remove(attempt)
        self._attempts.forget(attempt)
        self._claims.release([attempt])

    async def requeue(self, attempt: HeldAttempt, payload: pb.Payload, why: str) -> None:
        """Let others run what could not begin here, for a reason that is not its own."""
        self._starts.failed(why)
        await self._facilities.log_limit.finish(attempt, 0)
        await self._cleaner.remove(attempt)  # first: we may get it again ourselves
        if attempt.end.interrupted is not None:
            await self.abandon(attempt, attempt.end.interrupted)
        elif attempt.end.killed is not None:
            await self.conclude_killed(attempt, attempt.end.killed)
        else:
            self._requeuer.requeue([Waiting(attempt, payload, time.monotonic())])
