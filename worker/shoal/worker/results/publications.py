"""Files that attempts hand over to the resources of their project.

When an attempt has ended well, a process of the worker's own writes them into the storage. Only
then its record says so, and only such a record is a result: an attempt whose files are not there
has said nothing about its task. A master makes them versions when it stores the success.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

import structlog

from shoal.core.definition.resources import path_problem
from shoal.core.errors import ShoalError
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt
from shoal.worker.home.spool import Spool
from shoal.worker.home.upload import Leaving, Stored, Upload
from shoal.worker.logs.lines import append_line, handed_over
from shoal.worker.processes.helpers import Helpers
from shoal.worker.processes.launcher import LauncherDied, LauncherUnavailable, LaunchFailed
from shoal.worker.processes.program import ExitRecord, ProcessOutcome
from shoal.worker.results.results import PUBLISHED, as_json
from shoal.worker.supervisor.causes import INTERRUPTIONS, EndCause
from shoal.worker.supervisor.shim.masks import Masker

log = structlog.get_logger()

TIMEOUT_S = 3600.0  # for all files of an attempt
_STORING = "shoal.worker.home.upload"


class NotHandedOver(ShoalError):
    """Files of an attempt are not in the storage."""


class Publisher:
    """Completes records. Belongs to the event loop; the storage is at ``url``."""

    def __init__(self, url: str, helpers: Helpers, spool: Spool, tasks: asyncio.TaskGroup) -> None:
        self._url, self._helpers, self._spool, self._tasks = url, helpers, spool, tasks

    async def complete(self, attempt: HeldAttempt, record: ExitRecord) -> ExitRecord:
        """Return what becomes of an attempt that has ended well, stored, when its files are there.

        Without them it has failed, or was killed or interrupted meanwhile.
        """
        failpoints.hit("publish.before_upload")
        attempt.publishing = self._tasks.create_task(self._store(attempt), name="hand files over")
        if attempt.end.reason is not None:
            attempt.publishing.cancel()
        await asyncio.wait([attempt.publishing])
        done, attempt.publishing = attempt.publishing, None
        failpoints.hit("publish.after_upload")
        ended = _ended(attempt, record, None if done.cancelled() else done.result())
        try:
            line = _line(attempt, ended)
            if attempt.launch.log_path is not None and line:
                await asyncio.to_thread(append_line, attempt.launch.log_path, line)
            await asyncio.to_thread(self._spool.write, ended.id, as_json(ended))
        except OSError as error:
            # Reported all the same; if this agent dies before, the master finds the claim gone.
            log.error("result not stored", task_instance=attempt.id, error=str(error))
        failpoints.hit("publish.after_record")
        return ended

    async def _store(self, attempt: HeldAttempt) -> list[Stored] | Exception:
        """Write the files into the storage; return what was written, or what went wrong."""
        assert attempt.launch.work_dir is not None
        for one in attempt.launch.publications:
            if problem := path_problem(one.file) or path_problem(one.path):
                return NotHandedOver(f"publish: the payload names {problem}")
        files = [Leaving(one.file, one.path, one.object) for one in attempt.launch.publications]
        errand = Upload(
            self._url, str(attempt.launch.work_dir), attempt.launch.largest_publication, files
        )
        try:
            ended = await self._helpers.run(
                _STORING, errand.to_json(), name="store", timeout_s=TIMEOUT_S
            )
        except (ShoalError, OSError) as error:
            return error
        if not ended.is_well:
            return NotHandedOver(ended.why)
        return [Stored(**one) for one in json.loads(ended.answer)]


def _ended(
    attempt: HeldAttempt, record: ExitRecord, outcome: Sequence[Stored] | Exception | None
) -> ExitRecord:
    """Return the record of an attempt whose files were handed over, or not; None: cancelled."""
    if outcome is not None and not isinstance(outcome, Exception):
        published = [asdict(one) for one in outcome]
        return replace(record, context={**record.context, PUBLISHED: published})
    if attempt.end.interrupted is not None or _is_interruption(outcome):
        reason = attempt.end.interrupted or str(outcome)
        return replace(
            record, outcome=ProcessOutcome.KILLED, cause=EndCause.INTERRUPT, reason=reason
        )
    if attempt.end.killed is not None:
        reason = attempt.end.killed
        return replace(record, outcome=ProcessOutcome.KILLED, cause=EndCause.KILL, reason=reason)
    reason = Masker(attempt.launch.masks).mask(str(outcome))
    return replace(record, outcome=ProcessOutcome.FAILED, reason=reason)


def _is_interruption(error: object) -> bool:
    """Whether the files are not there for a reason that is the worker's own."""
    if isinstance(error, LaunchFailed):
        return error.cause in INTERRUPTIONS
    return isinstance(error, LauncherDied | LauncherUnavailable)


def _line(attempt: HeldAttempt, record: ExitRecord) -> str:
    """Return what the log says about it; empty: nothing."""
    if record.outcome is ProcessOutcome.SUCCEEDED:
        return handed_over({one.file: one.path for one in attempt.launch.publications})
    return f"shoal: {record.reason}" if record.outcome is ProcessOutcome.FAILED else ""
