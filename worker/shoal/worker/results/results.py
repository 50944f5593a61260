"""Exit records as results: what of them is reported, and in which words.

A record is a result unless the attempt was *interrupted*: killed because the worker lost its
session, was stopped, or died. Such an attempt says nothing about its task; its claim goes, and the
master declares it LOST. The cause in the record decides, after a restart, too.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from shoal.core.definition.parameters import RESERVED_PATTERN
from shoal.proto import shoal_pb2 as pb
from shoal.worker.attempts.held import HeldAttempt
from shoal.worker.home.spool import Spool
from shoal.worker.processes.launcher import LaunchFailed
from shoal.worker.processes.program import ExitRecord, ProcessOutcome
from shoal.worker.processes.work_files import OUTPUT_FILE
from shoal.worker.supervisor.causes import INTERRUPTIONS, EndCause
from shoal.worker.supervisor.shim.outputs import BadOutput, collect

#: In the context of a record: that the attempt hands files over, and those in the storage by now.
PUBLISHES, PUBLISHED = "publishes", "published"
#: The same of "project.workflow", below which its log lies, and of what that says of a failure.
WORKFLOW, ERROR_LINE = "workflow", "error_line"
LONGEST_REASON = 2000  # characters: a sentence with the end of an error, for tables and pages

NOBODY_KNOWS = (
    "its worker died before it knew whether the task had taken effect, so it is not tried again"
)

_KINDS = {
    ProcessOutcome.SUCCEEDED: pb.SUCCEEDED,
    ProcessOutcome.FAILED: pb.FAILED,
    ProcessOutcome.KILLED: pb.KILLED,
}


def record_context(
    worker_id: str,
    attempt: HeldAttempt,
    permanent_exit_codes: Sequence[int] = (),
    not_yet_exit_code: int | None = None,
    *,
    repeats: bool = True,
) -> dict[str, Any]:
    """Return what a later agent needs to report the result of ``attempt``.

    ``repeats``: another attempt may follow when the end of this one is unknown.
    """
    entry = attempt.claim.entry
    context: dict[str, Any] = {
        "worker_id": worker_id,
        "workflow_instance_id": entry.workflow_instance_id,
        "task_instance_id": entry.task_instance_id,
        "partition": entry.partition,
    }
    if attempt.launch.workflow is not None:
        context[WORKFLOW] = attempt.launch.workflow
    if attempt.launch.environment:
        context["environment"] = attempt.launch.environment
    if attempt.launch.publications:
        context[PUBLISHES] = True
    if permanent_exit_codes:
        context["permanent_exit_codes"] = list(permanent_exit_codes)
    if not_yet_exit_code is not None:
        context["not_yet_exit_code"] = not_yet_exit_code
    if not repeats:
        context["repeats"] = False
    return context


def made_permanent(record: ExitRecord) -> ExitRecord:
    """Return the record of a failure that no attempt may follow."""
    return replace(record, context={**record.context, "permanent": True})


def of_earlier_life(record: ExitRecord) -> ExitRecord:
    """Return a record whose agent may have died before it knew all, as what it means for sure."""
    is_own = record.cause is EndCause.EXITED
    if record.outcome is not ProcessOutcome.FAILED or is_own or record.context.get("repeats", True):
        return record
    return made_permanent(replace(record, reason=f"{record.reason}; {NOBODY_KNOWS}"))


def without_process(
    worker_id: str,
    attempt: HeldAttempt,
    outcome: ProcessOutcome,
    cause: EndCause,
    reason: str,
    exit_code: int | None = None,
) -> ExitRecord:
    """Return the record of an attempt that ended without a process."""
    now = time.time()
    return ExitRecord(
        id=str(attempt.id),
        outcome=outcome,
        cause=cause,
        exit_code=exit_code,
        signal=None,
        reason=reason,
        timed_out=False,
        started_at=now,
        finished_at=now,
        max_rss_kb=0,
        cpu_s=0.0,
        context=record_context(worker_id, attempt),
    )


def as_json(record: ExitRecord) -> dict[str, Any]:
    """Return ``record`` as the launcher writes it."""
    fields = {**vars(record), "outcome": record.outcome.value, "cause": record.cause.value}
    fields |= {"context": dict(record.context), "outputs": dict(record.outputs)}
    del fields["durable"]
    return fields


def was_interrupted(record: ExitRecord) -> bool:
    """Return whether the attempt ended without a result."""
    return record.cause in INTERRUPTIONS


def lacks_files(record: ExitRecord) -> bool:
    """Return whether an attempt ended well, but has not handed over its files.

    They are gone with its folder when its agent has died; that is not a result.
    """
    is_well, context = record.outcome is ProcessOutcome.SUCCEEDED, record.context
    return is_well and bool(context.get(PUBLISHES)) and PUBLISHED not in context


def result(record: ExitRecord) -> tuple[str, pb.Report]:
    """Return the worker id that held the attempt, and its report.

    Raises KeyError or TypeError if the record is of another agent's making.
    """
    context: Mapping[str, Any] = record.context
    report = pb.Report(
        attempt=pb.AttemptRef(
            workflow_instance_id=context["workflow_instance_id"],
            task_instance_id=context["task_instance_id"],
            partition=context["partition"],
        ),
        kind=_KINDS[record.outcome],
        at=record.finished_at,
        started_at=record.started_at,
        reason="" if record.outcome is ProcessOutcome.SUCCEEDED else reason_for_people(record),
        environment=context.get("environment", ""),
    )
    if record.max_rss_kb:  # it had a process
        report.cpu_s, report.max_rss_kb = record.cpu_s, record.max_rss_kb
    if is_not_yet(record):
        report.kind, report.again_s = pb.RESCHEDULED, context.get("again_s") or 0.0
    report.permanent = bool(context.get("permanent"))
    if record.exit_code is not None:
        report.exit_code = record.exit_code
        codes = context.get("permanent_exit_codes", ())
        is_own = record.cause is EndCause.EXITED
        report.permanent |= is_own and record.exit_code in codes
    if record.outcome is not ProcessOutcome.SUCCEEDED:
        report.error_line = context.get(ERROR_LINE, "")
    else:
        report.outputs.update(record.outputs)
        report.published.extend(pb.PublishedFile(**one) for one in context.get(PUBLISHED, ()))
    return str(context["worker_id"]), report


def is_not_yet(record: ExitRecord) -> bool:
    """Return whether the attempt was a look that did not find what its task waits for."""
    code = record.context.get("not_yet_exit_code")
    is_exit = record.outcome is ProcessOutcome.FAILED and record.cause is EndCause.EXITED
    return is_exit and code is not None and record.exit_code == code


def with_outputs(record: ExitRecord, attempt: HeldAttempt, spool: Spool) -> ExitRecord:
    """Return the record with what the launcher has stored beside it. Blocks."""
    try:
        if record.durable:
            return replace(record, outputs=spool.get(record.id)["outputs"])
        # The disk has no room for a record; the task's own files are still there.
        assert attempt.launch.work_dir is not None
        output_file, log_file = attempt.launch.work_dir / OUTPUT_FILE, attempt.launch.log_path
        found = collect(str(output_file), str(log_file), RESERVED_PATTERN, attempt.launch.masks)
        return replace(record, outputs=found)
    except (OSError, ValueError, KeyError, BadOutput) as error:
        reason = f"its outputs were lost on this worker: {error}"
        return replace(record, outcome=ProcessOutcome.FAILED, reason=reason)


def reason_for_people(record: ExitRecord) -> str:
    """Return why the attempt ended as it did."""
    # A path in it may hold bytes that are not UTF-8, which no message can carry.
    reason = record.reason.encode("utf-8", "replace").decode("utf-8")
    return reason if len(reason) <= LONGEST_REASON else reason[: LONGEST_REASON - 1] + "…"


def describe(error: BaseException) -> str:
    """Return why a task could not be run, in words for its author."""
    match error:
        case ValidationError():
            problems = [
                f"{'.'.join(map(str, item['loc'])) or 'params'}: {item['msg']}"
                for item in error.errors(include_input=False, include_url=False)
            ]
            return "the task's params are wrong: " + "; ".join(problems)
        case LaunchFailed():
            return error.why
        case OSError():
            return f"the worker cannot prepare the task: {error}"
        case _:
            return str(error) or type(error).__name__
