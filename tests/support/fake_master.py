"""A master for the tests of workers: the real service contract, with its state in memory.

Several masters may share one ``TaskTable``, as real ones share the database; each answers for the
partitions whose owner znode it holds.
"""

import asyncio
import itertools
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from shoal.coordination import QueueEntry, TaskQueue, ZkSession, prepare
from shoal.coordination.cluster import layout
from shoal.coordination.errors import CoordinationError
from shoal.proto import shoal_pb2 as pb
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import MasterServiceServicer, add_MasterServiceServicer_to_server
from shoal.proto.tls import TlsFiles
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S

ENDS = {
    pb.SUCCEEDED: "SUCCEEDED",
    pb.FAILED: "FAILED",
    pb.KILLED: "KILLED",
    pb.RESCHEDULED: "RESCHEDULED",
}
PARTITIONS = 4
SWEEP_EVERY_S = 0.5


@dataclass
class Task:
    """One task instance as the masters know it."""

    entry: QueueEntry
    payload: pb.Payload
    state: str = "QUEUED"
    worker: str = ""
    report: pb.Report | None = None
    put: bool = False  # it has been in the queue
    committed: int = 0  # reports of its end that were answered COMMITTED


@dataclass
class TaskTable:
    """What the database is to real masters."""

    tasks: dict[int, Task] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def note(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait(
        self, task_instance_id: int, *states: str, timeout_s: float = DEADLINE_S
    ) -> Task:
        """Return the task once it is in one of ``states``."""
        task = self.tasks[task_instance_id]
        try:
            async with asyncio.timeout(timeout_s):
                while task.state not in states:
                    await self.changed.wait()
        except TimeoutError:
            raise AssertionError(f"{task_instance_id} is {task.state}, not {states}") from None
        return task

    async def ended(self, task_instance_id: int, timeout_s: float = DEADLINE_S) -> Task:
        return await self.wait(task_instance_id, *ENDS.values(), timeout_s=timeout_s)


CLUSTER = "the cluster of the fake master"  # its uid


class FakeMaster(MasterServiceServicer):
    """Owns ``partitions`` while its block lasts, serves them, and puts tasks into the queue.

    Faults: ``lose_replies`` answers about ends are stored but never arrive; ``retries`` calls are
    answered RETRY; nothing is answered while ``open`` is cleared.
    """

    def __init__(
        self,
        zookeeper: str,
        tls: TlsFiles,
        table: TaskTable,
        *,
        master_id: str = "fake",
        partitions: range = range(PARTITIONS),
    ) -> None:
        self._zookeeper, self._tls, self.table = zookeeper, tls, table
        self._id, self._partitions = master_id, partitions
        self.owned: set[int] = set()
        self.open = asyncio.Event()
        self.open.set()
        self.lose_replies = self.retries = 0
        self.purged: set[int] = set()  # instances that it does not know
        self.runs_lost_again = False  # what is CLAIMED without a claim is QUEUED again
        self.asked: list[int] = []  # by Fetch calls that have arrived
        self.fetched: list[int] = []  # by those that were answered
        self.reports: list[pb.Report] = []
        self.report_calls = 0
        self.fetches: list[int] = []  # how many tasks each Fetch call was about
        self.address = ""
        self.session: ZkSession
        self.queue: TaskQueue
        self._server: grpc.aio.Server
        self._sweeper: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self.session = ZkSession(self._zookeeper, session_timeout_s=STEADY_SESSION_S, name=self._id)
        await self.session.__aenter__()
        await prepare(self.session, PARTITIONS)
        self.queue = TaskQueue(self.session)
        self._server, self.address = await start_server(
            self._tls, lambda server: add_MasterServiceServicer_to_server(self, server)
        )
        for partition in self._partitions:
            await self.own(partition)
        self._sweeper = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.open.set()
        self._sweeper.cancel()
        await asyncio.wait([self._sweeper])
        await self._server.stop(0)
        await self.session.__aexit__(None, None, None)

    async def _sweep(self) -> None:
        """Put tasks again that are QUEUED in the table and neither in the queue nor claimed."""
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            queued = [t.entry for t in self.table.tasks.values() if t.put and t.state == "QUEUED"]
            mine = [entry for entry in queued if entry.partition in self.owned]
            with suppress(CoordinationError):
                if self.runs_lost_again:
                    await self._queue_lost()
                present = await self.queue.contains(mine)
                absent = [entry for entry in mine if entry not in present]
                claimed = await self.queue.claimed([e.task_instance_id for e in absent])
                missing = [e for e in absent if e.task_instance_id not in claimed]
                await self.queue.put(
                    e for e in missing if self.table.tasks[e.task_instance_id].state == "QUEUED"
                )

    async def _queue_lost(self) -> None:
        held = {i: t for i, t in self.table.tasks.items() if t.state == "CLAIMED"}
        for number in held.keys() - await self.queue.claimed(held):
            if held[number].state == "CLAIMED":
                held[number].state, held[number].worker = "QUEUED", ""

    async def own(self, partition: int) -> None:
        data = json.dumps({"owner_id": self._id, "address": self.address}).encode()
        await self.session.create(layout.owner(partition), data, ephemeral=True)
        self.owned.add(partition)

    async def disown(self, partition: int) -> None:
        """Stop serving the partition; its znode stays until ``vacate``, as in a takeover."""
        self.owned.discard(partition)

    async def vacate(self, partition: int) -> None:
        await self.session.delete(layout.owner(partition))

    async def unclaimed(self, task_instance_id: int) -> None:
        """Return when nobody claims that task (any more). Workers release a moment later."""
        async with asyncio.timeout(DEADLINE_S):
            while await self.queue.claimed([task_instance_id]):
                await asyncio.sleep(0.01)

    async def submit(
        self,
        kind: str,
        params: dict[str, Any],
        *,
        parameters: dict[str, str] | None = None,
        secrets: dict[str, str] | None = None,
        group: str = "default",
        timeout_s: float = 0.0,
        outputs_from_log: bool = False,
        undeclared: Sequence[str] = (),
        put: bool = True,
        **fields: Any,
    ) -> int:
        """Queue a task; return its id. ``fields``: further ones of its payload."""
        return (
            await self.submit_many(
                1,
                kind,
                params,
                parameters=parameters,
                secrets=secrets,
                group=group,
                timeout_s=timeout_s,
                outputs_from_log=outputs_from_log,
                undeclared=undeclared,
                put=put,
                **fields,
            )
        )[0]

    async def submit_many(
        self,
        count: int,
        kind: str,
        params: dict[str, Any],
        *,
        parameters: dict[str, str] | None = None,
        secrets: dict[str, str] | None = None,
        group: str = "default",
        timeout_s: float = 0.0,
        outputs_from_log: bool = False,
        undeclared: Sequence[str] = (),
        put: bool = True,
        attempt: int = 1,
        project: str = "tests",
        **fields: Any,
    ) -> list[int]:
        new = []
        for number in itertools.islice(self.table.ids, count):
            entry = QueueEntry(group, 2, 7, 2, number, number % PARTITIONS)
            payload = pb.Payload(
                workflow_instance_id=7,
                task_instance_id=number,
                partition=entry.partition,
                project=project,
                workflow="wf",
                version=3,
                task=f"task-{number}",
                type=kind,
                attempt=attempt,
                params_json=json.dumps(params),
                parameters=parameters or {},
                secrets=secrets or {},
                timeout_s=timeout_s,
                logical_time=1_700_000_000.0,
                epoch=99,
                timezone="Europe/Berlin",
                outputs_from_log=outputs_from_log,
                undeclared=undeclared,
                **fields,
            )
            self.table.tasks[number] = Task(entry, payload, put=put)
            new.append(number)
        if put:
            await self.queue.put([self.table.tasks[number].entry for number in new])
        return new

    # -- the service ------------------------------------------------------------------------

    async def Standing(  # noqa: N802 - the name is the contract's
        self, request: pb.StandingRequest, context: Any
    ) -> pb.StandingResponse:
        """Say that everything still runs: no log goes."""
        known = [one for one in request.workflow_instance_ids if one not in self.purged]
        return pb.StandingResponse(open=known, cluster=CLUSTER)

    async def Fetch(  # noqa: N802 - the name is the contract's
        self, request: pb.FetchRequest, context: Any
    ) -> pb.FetchResponse:
        self.asked += [ref.task_instance_id for ref in request.attempts]
        self.fetches.append(len(request.attempts))
        await self.open.wait()
        verdicts = [self._fetch(ref, request.worker_id) for ref in request.attempts]
        self.table.note()
        return pb.FetchResponse(verdicts=verdicts)

    def _fetch(self, ref: pb.AttemptRef, worker: str) -> pb.FetchVerdict:
        self.fetched.append(ref.task_instance_id)
        verdict = pb.FetchVerdict(task_instance_id=ref.task_instance_id)
        task = self.table.tasks.get(ref.task_instance_id)
        if ref.partition not in self.owned:
            verdict.refusal.kind = pb.Refusal.NOT_OWNER
        elif self.retries > 0:
            self.retries -= 1
            verdict.refusal.kind = pb.Refusal.RETRY
        elif task is None or (task.state, task.worker) not in (("QUEUED", ""), ("CLAIMED", worker)):
            verdict.refusal.kind = pb.Refusal.SUPERSEDED
            verdict.refusal.reason = "nobody wants it"
        else:
            task.state, task.worker = "CLAIMED", worker
            verdict.payload.CopyFrom(task.payload)
        return verdict

    async def Report(  # noqa: N802 - the name is the contract's
        self, request: pb.ReportRequest, context: Any
    ) -> pb.ReportResponse:
        self.report_calls += 1
        await self.open.wait()
        verdicts = [self._report(report, request.worker_id) for report in request.reports]
        self.table.note()
        has_end = any(report.kind != pb.STARTED for report in request.reports)
        if has_end and self.lose_replies > 0:
            self.lose_replies -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the reply is lost on purpose")
        return pb.ReportResponse(verdicts=verdicts)

    def _report(self, report: pb.Report, worker: str) -> pb.ReportVerdict:
        self.reports.append(report)
        number = report.attempt.task_instance_id
        verdict = pb.ReportVerdict(task_instance_id=number)
        task = self.table.tasks.get(number)
        if report.attempt.partition not in self.owned:
            verdict.kind = pb.ReportVerdict.NOT_OWNER
        elif self.retries > 0:
            self.retries -= 1
            verdict.kind = pb.ReportVerdict.RETRY
        elif report.kind == pb.RETURNED:
            verdict.kind = self._take_back(report, task, worker)
        elif task is None or task.worker != worker or task.state not in ("CLAIMED", "RUNNING"):
            verdict.kind = pb.ReportVerdict.SUPERSEDED
        elif report.kind == pb.STARTED:
            task.state, verdict.kind = "RUNNING", pb.ReportVerdict.COMMITTED
        else:
            task.state, task.report, verdict.kind = (
                ENDS[report.kind],
                report,
                pb.ReportVerdict.COMMITTED,
            )
            task.committed += 1
        return verdict

    def _take_back(
        self, report: pb.Report, task: Task | None, worker: str
    ) -> "pb.ReportVerdict.Kind.ValueType":
        if task is None or task.state not in ("CLAIMED", "QUEUED"):
            return pb.ReportVerdict.SUPERSEDED
        if (task.worker, task.payload.queued_at) == (worker, report.queued_at):
            task.state, task.worker = "QUEUED", ""
            task.payload.queued_at += 1
        return pb.ReportVerdict.COMMITTED if task.state == "QUEUED" else pb.ReportVerdict.SUPERSEDED
