"""The master's gRPC service: workers fetch payloads here and report results."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import grpc
import structlog

from shoal.core.definition.environments import LONGEST_LABEL
from shoal.core.errors import ShoalError
from shoal.core.runs.events import (
    LONGEST_ERROR,
    TaskClaimed,
    TaskEnded,
    TaskRequeued,
    TaskStarted,
)
from shoal.core.runs.quarantine import reason_of
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.states import TaskSignal, TaskState
from shoal.master.dispatch.payloads import PayloadMaker
from shoal.master.dispatch.resources import UnusableResource
from shoal.master.dispatch.secrets import SecretUnreadable
from shoal.master.dispatch.side_thread import Patience
from shoal.master.engine.actions import queue_entry
from shoal.master.engine.batch import PublishedFile
from shoal.master.engine.eager_dispatch import EagerRequest, behind
from shoal.master.engine.engine import Engine
from shoal.master.engine.held_runs import Clock
from shoal.master.engine.publications import BadPublication
from shoal.master.errors import PartitionNotOwned, Quarantined
from shoal.master.loops import is_shortage
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import MAX_MESSAGE_BYTES
from shoal.proto.shoal_pb2_grpc import MasterServiceServicer
from shoal.runtime import failpoints
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.vault import Vault
from shoal.sql import Database
from shoal.sql.errors import NotFound

log = structlog.get_logger()

_ENDS = {
    pb.SUCCEEDED: TaskSignal.SUCCEED,
    pb.FAILED: TaskSignal.FAIL,
    pb.KILLED: TaskSignal.KILL,
    pb.RESCHEDULED: TaskSignal.RESCHEDULE,
}
_LARGEST_PAYLOAD = MAX_MESSAGE_BYTES - 64 * 1024  # bytes; an answer of one has to fit
_LARGEST_MEASURED = 10**12  # seconds or KiB of an attempt: no machine has as much
_MOST_STANDING = 1_000  # instances asked about with one call
AGREE_S = 2.0  # a difference that small may be the call's way here
_MOST_GRANTED = MAX_MESSAGE_BYTES // 4  # bytes of payloads with the answer to reports


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """The clock of a worker as one call showed it.

    ``now``: when the call came, aware. ``sent_at``: when the worker sent it, by its own clock, in
    seconds since the epoch; 0 if it did not say.
    """

    now: datetime
    sent_at: float

    def instant(self, timestamp: float) -> datetime:
        """Return the cluster's time of a worker's ``timestamp``; never later than now.

        If its clock jumped between the moment and the call, the answer is wrong by as much.
        """
        try:
            moment = datetime.fromtimestamp(timestamp, UTC) + timedelta(seconds=self._behind_s)
        except (ValueError, OverflowError, OSError):
            return self.now
        return min(moment, self.now)

    @property
    def _behind_s(self) -> float:
        """How far the worker's clock is behind, 0 if it is right or that is not known."""
        behind_s = self.now.timestamp() - self.sent_at
        return behind_s if self.sent_at and abs(behind_s) > AGREE_S else 0.0


class MasterRpc(MasterServiceServicer):
    """Answers workers; every answer follows from what is stored."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        database: Database,
        vault: Vault,
        resolver: Resolver,
        cluster: str = "",
    ) -> None:
        """``cluster``: a name that no other cluster has."""
        self._engine, self._clock = engine, clock
        self._database = database
        self._cluster = cluster
        self._maker = PayloadMaker(
            database, vault, engine.epoch_of, cluster, engine.publications, clock, resolver
        )

    async def Fetch(  # noqa: N802 - the name is the contract's
        self,
        request: pb.FetchRequest,
        context: grpc.aio.ServicerContext[pb.FetchRequest, pb.FetchResponse],
    ) -> pb.FetchResponse:
        """Grant claimed attempts: each is stored as CLAIMED before its payload leaves."""
        worker = request.worker_id
        # All events are in the inbox before the first is awaited: one transaction serves them.
        claims = [(ref, self._claim(worker, ref)) for ref in request.attempts]
        patience = Patience()
        verdicts = [await self._grant(worker, ref, claim, patience) for ref, claim in claims]
        failpoints.hit("fetch.before_reply")
        return pb.FetchResponse(verdicts=verdicts)

    async def Standing(  # noqa: N802 - the name is the contract's
        self,
        request: pb.StandingRequest,
        context: grpc.aio.ServicerContext[pb.StandingRequest, pb.StandingResponse],
    ) -> pb.StandingResponse:
        """Answer which instances are open or ended: a worker asks whose logs may go."""
        ids = request.workflow_instance_ids
        if len(ids) > _MOST_STANDING:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, f"at most {_MOST_STANDING} instances at once"
            )
        try:
            async with self._database.unit_of_work(read_only=True) as uow:
                ends = await uow.instances.ends(ids)
        except ShoalError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise  # abort does
        ended = {one: at.timestamp() for one, at in ends.items() if at is not None}
        return pb.StandingResponse(
            open=ends.keys() - ended.keys(),
            ended=ended.keys(),
            ended_at=ended.values(),
            now=self._clock().timestamp(),
            cluster=self._cluster,
        )

    def _claim(self, worker: str, ref: pb.AttemptRef) -> asyncio.Future[Run]:
        self._engine.asked.add(ref.task_instance_id)
        event = TaskClaimed(ref.task_instance_id, worker, self._clock())
        return self._engine.enqueue(ref.partition, ref.workflow_instance_id, event)

    async def _grant(
        self, worker: str, ref: pb.AttemptRef, claim: asyncio.Future[Run], patience: Patience
    ) -> pb.FetchVerdict:
        try:
            run = await claim
        except PartitionNotOwned as error:
            return _refused(ref, pb.Refusal.NOT_OWNER, error)
        except (NotFound, Quarantined) as error:  # a RETRY would keep a worker's slot for ever
            return _refused(ref, pb.Refusal.SUPERSEDED, error)
        except ShoalError as error:
            return _refused(ref, pb.Refusal.RETRY, error)
        attempt = run.attempt_by_id(ref.task_instance_id)
        if attempt is None or attempt.state is not TaskState.CLAIMED or attempt.worker != worker:
            found = "an older attempt" if attempt is None else f"{attempt.state} already"
            return _refused(ref, pb.Refusal.SUPERSEDED, found)
        try:
            made = await self._maker.make(run, attempt, patience)
            granted = pb.FetchVerdict(task_instance_id=ref.task_instance_id, payload=made)
        except PartitionNotOwned as error:
            return _refused(ref, pb.Refusal.NOT_OWNER, error)
        except ShoalError as error:
            if error.retriable:
                return _refused(ref, pb.Refusal.RETRY, error)
            permanent = isinstance(error, UnusableResource | BadPublication) or (
                isinstance(error, SecretUnreadable) and error.permanent
            )
            return await self._fail_unrenderable(worker, ref, run, str(error), permanent=permanent)
        except Exception as error:
            if is_shortage(error):  # later, or from another master
                why = f"the master has no memory or thread left: {reason_of(error)}"
                return _refused(ref, pb.Refusal.RETRY, why)
            # An error of this task must not keep the others of the call from their payloads.
            log.exception("payload not made", run=run.id, task=attempt.task)
            return await self._fail_unrenderable(worker, ref, run, f"cannot be rendered: {error!r}")
        if (size := granted.ByteSize()) > _LARGEST_PAYLOAD:
            reason = (
                f"params and parameters make {size} bytes, at most {_LARGEST_PAYLOAD} can be sent "
                "to a worker; pass large data by file or URL"
            )
            return await self._fail_unrenderable(worker, ref, run, reason)
        return granted

    async def _fail_unrenderable(
        self, worker: str, ref: pb.AttemptRef, run: Run, reason: str, *, permanent: bool = False
    ) -> pb.FetchVerdict:
        """A task whose text cannot be rendered fails with the reason, without a process."""
        event = TaskEnded(
            ref.task_instance_id,
            TaskSignal.FAIL,
            self._clock(),
            worker,
            reason,
            permanent=permanent,
        )
        try:
            await self._engine.submit(run.partition, run.id, event)
        except ShoalError as trouble:
            return _refused(ref, pb.Refusal.RETRY, trouble)
        return _refused(ref, pb.Refusal.SUPERSEDED, reason)

    async def Report(  # noqa: N802 - the name is the contract's
        self,
        request: pb.ReportRequest,
        context: grpc.aio.ServicerContext[pb.ReportRequest, pb.ReportResponse],
    ) -> pb.ReportResponse:
        """Store reports; the verdicts say which ones the worker may forget.

        Eager tasks behind those that have ended are granted with the answer. Each report is
        answered by itself: one that cannot be answered has to come again, and holds up no other.
        """
        worker, eager = request.worker_id, _eager_request(request)
        time = WorkerTime(self._clock(), request.sent_at)
        handed = [(report, self._take(worker, report, time, eager)) for report in request.reports]
        answer = pb.ReportResponse()
        for report, taken in handed:
            part = pb.ReportResponse()
            try:
                verdict, run = await _verdict(worker, report, taken)
                if eager is not None and run is not None and report.kind in _ENDS:
                    granted = answer.ByteSize()
                    await self._dispatch_eagerly(
                        part, granted, worker, run, verdict.task_instance_id
                    )
            except Exception:  # an error of its run: others wait for their verdicts
                ref = report.attempt
                log.exception(
                    "report not answered", run=ref.workflow_instance_id, task=ref.task_instance_id
                )
                part = pb.ReportResponse()
                verdict = _again(report)
            part.verdicts.append(verdict)
            answer.MergeFrom(part)
        failpoints.hit("report.before_reply")
        return answer

    async def _dispatch_eagerly(
        self,
        answer: pb.ReportResponse,
        granted: int,
        worker: str,
        run: Run,
        task_instance_id: int,
    ) -> None:
        """Grant what the worker holds behind an attempt: what was stored just now, or before.

        The answer names all of it, since with it the worker releases the claim before; a worker
        that does not get all of it reports again. Payload errors are handled in Fetch.
        ``granted``: bytes that were granted before.
        """
        for attempt in list(behind(run, task_instance_id, worker)):
            grant = pb.EagerTask(
                behind=task_instance_id, attempt=_ref(run, attempt), place=_place(run, attempt)
            )
            try:
                made = await self._maker.make(run, attempt, Patience(0.0))  # Fetch waits for it
            except Exception as error:  # noqa: BLE001 - Fetch refuses it with the reason
                log.info("payload not made yet", task_instance=attempt.id, why=str(error))
            else:
                if granted + answer.ByteSize() + made.ByteSize() <= _MOST_GRANTED:
                    grant.payload.CopyFrom(made)
            answer.eager_tasks.append(grant)

    def _take(
        self, worker: str, report: pb.Report, time: WorkerTime, eager: EagerRequest | None
    ) -> asyncio.Future[Run] | None:
        """Put the event of a report into the inbox; None if it is unknown or cannot be read."""
        try:
            event = _event(worker, report, time)
        except Exception:
            log.exception("report not read", worker=worker, task=report.attempt.task_instance_id)
            return None
        if event is None:  # of a newer worker: a newer master will understand it
            log.warning("report of an unknown kind", worker=worker, kind=report.kind)
            return None
        ref = report.attempt
        published = tuple(PublishedFile(one.path, one.sha256, one.size) for one in report.published)
        return self._engine.enqueue(
            ref.partition, ref.workflow_instance_id, event, eager=eager, published=published
        )


async def _verdict(
    worker: str, report: pb.Report, taken: asyncio.Future[Run] | None
) -> tuple[pb.ReportVerdict, Run | None]:
    """Return the verdict, and the run if the report is COMMITTED."""
    ref = report.attempt
    if taken is None:
        return _again(report), None
    verdict = pb.ReportVerdict(task_instance_id=ref.task_instance_id)
    try:
        run = await taken
    except PartitionNotOwned:
        verdict.kind = pb.ReportVerdict.NOT_OWNER
    except NotFound:
        verdict.kind = pb.ReportVerdict.SUPERSEDED
    except ShoalError:
        verdict.kind = pb.ReportVerdict.RETRY
    else:
        attempt = run.attempt_by_id(ref.task_instance_id)
        mine = attempt is not None and attempt.worker == worker
        if report.kind == pb.RETURNED:  # its claim stands, so no other worker can have it
            mine = attempt is not None and attempt.state is TaskState.QUEUED
        verdict.kind = pb.ReportVerdict.COMMITTED if mine else pb.ReportVerdict.SUPERSEDED
        return verdict, run if mine else None
    return verdict, None


def _again(report: pb.Report) -> pb.ReportVerdict:
    number = report.attempt.task_instance_id
    return pb.ReportVerdict(task_instance_id=number, kind=pb.ReportVerdict.RETRY)


def _eager_request(request: pb.ReportRequest) -> EagerRequest | None:
    """Return what the worker would take with the answer; None if it takes nothing at all."""
    if not request.HasField("eager"):
        return None
    eager, before, lane = request.eager, None, None
    if eager.HasField("before"):
        place = eager.before
        before = (
            place.workflow_priority,
            place.workflow_instance_id,
            place.task_priority,
            place.task_instance_id,
        )
        lane = place.lane or None  # older workers know of no lanes
    return EagerRequest(request.worker_id, eager.group, eager.room, before, lane)


def _ref(run: Run, attempt: Attempt) -> pb.AttemptRef:
    assert attempt.id is not None
    return pb.AttemptRef(
        workflow_instance_id=run.id, task_instance_id=attempt.id, partition=run.partition
    )


def _place(run: Run, attempt: Attempt) -> pb.Place:
    entry = queue_entry(run, attempt)
    return pb.Place(
        workflow_priority=entry.workflow_priority,
        workflow_instance_id=entry.workflow_instance_id,
        task_priority=entry.task_priority,
        task_instance_id=entry.task_instance_id,
        lane=entry.lane,
    )


def _event(
    worker: str, report: pb.Report, time: WorkerTime
) -> TaskStarted | TaskEnded | TaskRequeued | None:
    """Return the event that ``report`` stands for; None if its kind is unknown.

    It happens now: a worker's account of the time is shown to people, and decides nothing.
    """
    ref, now = report.attempt, time.now
    environment = report.environment[:LONGEST_LABEL] or None
    if report.kind == pb.STARTED:
        return TaskStarted(ref.task_instance_id, worker, now, time.instant(report.at), environment)
    if report.kind == pb.RETURNED:
        return TaskRequeued(ref.task_instance_id, worker, _hold(report.queued_at), now)
    if report.kind not in _ENDS:
        return None
    return TaskEnded(
        ref.task_instance_id,
        _ENDS[report.kind],
        now,
        worker=worker,
        reason=report.reason or None,
        exit_code=report.exit_code if report.HasField("exit_code") else None,
        started_at=time.instant(report.started_at) if report.started_at else None,
        ended_at=time.instant(report.at),
        outputs=dict(report.outputs),
        permanent=report.permanent,
        again_s=report.again_s,
        environment=environment,
        cpu_s=_measured(report, "cpu_s"),
        max_rss_kb=_measured(report, "max_rss_kb"),
        error_line=report.error_line[:LONGEST_ERROR] or None,
    )


def _measured(report: pb.Report, field: Literal["cpu_s", "max_rss_kb"]) -> Any:
    """Return a measurement; None: the worker does not say, or it is none."""
    value = getattr(report, field)
    return value if report.HasField(field) and 0 <= value < _LARGEST_MEASURED else None


def _hold(queued_at: float) -> datetime:
    """Return the name of a hold: a master's own time, as the payload gave it to the worker."""
    try:
        return datetime.fromtimestamp(queued_at, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)  # no hold has this name


def _refused(
    ref: pb.AttemptRef, kind: "pb.Refusal.Kind.ValueType", reason: object
) -> pb.FetchVerdict:
    return pb.FetchVerdict(
        task_instance_id=ref.task_instance_id, refusal=pb.Refusal(kind=kind, reason=str(reason))
    )
