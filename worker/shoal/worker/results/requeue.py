"""Requeue granted attempts that have not begun, so that other workers may run them.

First their master stores that they are QUEUED again (or ended, if they were to end), then their
entries go back into the queue in the transaction that ends our claim. Until then they are
ours alone; if we die before that, the master's sweeper finds them without claim and entry.
An attempt that was handed to the launcher is never requeued, unless the launcher has answered that
it has no room to start it: then nothing of it has run, nor will.
"""

import asyncio
from collections.abc import Sequence

import structlog

from shoal.proto import shoal_pb2 as pb
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.intake.held_claims import HeldClaims
from shoal.worker.intake.prefetch import Waiting
from shoal.worker.results.reporter import Reporter

log = structlog.get_logger()


class Requeuer:
    """The attempts that are on their way back. Belongs to the event loop; runs in ``tasks``."""

    def __init__(
        self,
        worker_id: str,
        attempts: HeldAttempts,
        reporter: Reporter,
        tasks: asyncio.TaskGroup,
        claims: HeldClaims,
    ) -> None:
        self._worker_id, self._attempts, self._reporter = worker_id, attempts, reporter
        self._tasks, self._claims = tasks, claims
        self._asked: dict[tuple[int, float], HeldAttempt] = {}  # by task instance and queued_at

    def requeue(self, waiting: Sequence[Waiting]) -> None:
        """Return attempts that have left the prefetch buffer."""
        reports = []
        for attempt, payload, _ in waiting:
            self._attempts.end(attempt)
            self._asked[attempt.id, payload.queued_at] = attempt
            reports.append(
                pb.Report(attempt=attempt.ref, kind=pb.RETURNED, queued_at=payload.queued_at)
            )
        log.info("tasks requeued", task_instances=[attempt.id for attempt, _, _ in waiting])
        self._tasks.create_task(self._report(reports))

    def settled(self, report: pb.Report, committed: bool) -> None:
        """A master has answered: it has queued the attempt (``committed``), or wants no more."""
        attempt = self._asked.pop((report.attempt.task_instance_id, report.queued_at), None)
        if attempt is None:
            return  # of a session that was lost meanwhile
        self._attempts.forget(attempt)
        (self._claims.requeue if committed else self._claims.release)([attempt])

    def give_up(self) -> None:
        """Forget all: the session with our claims is lost, and their masters see to them."""
        for attempt in self._asked.values():
            self._attempts.forget(attempt)
            self._reporter.drop(attempt.id)
        self._asked.clear()

    async def _report(self, reports: Sequence[pb.Report]) -> None:
        failpoints.hit("requeue.before_report")
        for report in reports:
            if (report.attempt.task_instance_id, report.queued_at) in self._asked:
                self._reporter.add(self._worker_id, report)
