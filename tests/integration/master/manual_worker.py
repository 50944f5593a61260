"""A worker done by hand: claims, fetches and reports when a test says so."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from shoal.coordination import Owners, TaskClaim, TaskQueue, ZkSession
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.proto.errors import RpcError
from tests.support.waiting import DEADLINE_S


class HandWorker:
    """Speaks the real protocol on a session of its own; runs nothing."""

    def __init__(self, session: ZkSession, channels: Channels, worker_id: str) -> None:
        self.id = worker_id
        self._owners = Owners(session)
        self._channels = channels
        self.queue = TaskQueue(session)

    async def claim(self, count: int = 100, group: str = "default") -> list[TaskClaim]:
        """Claim up to ``count`` tasks, waiting for the first one."""
        while not (claims := await self.queue.claim(group, count, self.id)):
            await self.queue.wait(group, timeout_s=DEADLINE_S)
        return claims

    async def fetch(self, claims: Sequence[TaskClaim]) -> list[pb.FetchVerdict]:
        """Ask for the payloads, each from its partition's owner."""
        verdicts: list[pb.FetchVerdict] = []
        for claim in claims:
            request = pb.FetchRequest(worker_id=self.id, attempts=[_ref(claim)])
            address = await self._address(claim.entry.partition)
            answer = await call(
                address, self._channels.master(address).Fetch(request, timeout=DEADLINE_S)
            )
            verdicts.extend(answer.verdicts)
        return verdicts

    async def report(
        self,
        claim: TaskClaim,
        kind: "pb.ReportKind.ValueType",
        exit_code: int = 0,
        *,
        reason: str = "",
        again_s: float = 0.0,
        environment: str = "",
        published: Sequence[pb.PublishedFile] = (),
        **found: Any,
    ) -> "pb.ReportVerdict.Kind.ValueType":
        """Report one end, to the owner of the partition, and return the verdict.

        ``found``: further fields.
        """
        report = pb.Report(
            attempt=_ref(claim),
            kind=kind,
            at=1.7e9,
            exit_code=exit_code,
            reason=reason,
            again_s=again_s,
            environment=environment,
            published=published,
            **found,
        )
        return (await self._report(claim, report, None)).verdicts[0].kind

    async def requeue(
        self, claim: TaskClaim, payload: pb.Payload
    ) -> "pb.ReportVerdict.Kind.ValueType":
        """Tell that the attempt was not begun, and return the verdict; its claim stands."""
        report = pb.Report(attempt=_ref(claim), kind=pb.RETURNED, queued_at=payload.queued_at)
        return (await self._report(claim, report, None)).verdicts[0].kind

    async def report_and_take(
        self,
        claim: TaskClaim,
        room: int,
        *,
        kind: "pb.ReportKind.ValueType" = pb.SUCCEEDED,
        before: pb.Place | None = None,
    ) -> list[pb.EagerTask]:
        """Report one end, offering to take ``room`` tasks behind it; return those granted."""
        report = pb.Report(attempt=_ref(claim), kind=kind, at=1.7e9)
        eager = pb.EagerRequest(group=claim.entry.group, room=room, before=before)
        answer = await self._report(claim, report, eager)
        assert answer.verdicts[0].kind == pb.ReportVerdict.COMMITTED
        return list(answer.eager_tasks)

    async def report_together(
        self, claims: Sequence[TaskClaim], room: int
    ) -> tuple[list["pb.ReportVerdict.Kind.ValueType"], list[pb.EagerTask]]:
        """Report successes in one call, to the owner of the first; return verdicts and grants."""
        reports = [pb.Report(attempt=_ref(each), kind=pb.SUCCEEDED, at=1.7e9) for each in claims]
        request = pb.ReportRequest(
            worker_id=self.id,
            reports=reports,
            eager=pb.EagerRequest(group=claims[0].entry.group, room=room),
        )
        address = await self._address(claims[0].entry.partition)
        stub = self._channels.master(address)
        answer = await call(address, stub.Report(request, timeout=DEADLINE_S))
        return [verdict.kind for verdict in answer.verdicts], list(answer.eager_tasks)

    async def transfer(self, claim: TaskClaim, grants: Sequence[pb.EagerTask]) -> list[TaskClaim]:
        """Let the claim become those of the tasks that were granted behind it."""
        numbers = [grant.attempt.task_instance_id for grant in grants]
        entries = [replace(claim.entry, task_instance_id=number) for number in numbers]
        new = [TaskClaim(entry, self.id, 0, claim.generation) for entry in entries]
        assert await self.queue.transfer({claim: new}) == set(new)
        return new

    async def _report(
        self, claim: TaskClaim, report: pb.Report, eager: pb.EagerRequest | None
    ) -> pb.ReportResponse:
        request = pb.ReportRequest(worker_id=self.id, reports=[report], eager=eager)
        while True:
            address = await self._address(claim.entry.partition)
            answer = await call(
                address, self._channels.master(address).Report(request, timeout=DEADLINE_S)
            )
            verdict = answer.verdicts[0].kind
            if verdict not in (pb.ReportVerdict.NOT_OWNER, pb.ReportVerdict.RETRY):
                return answer
            self._owners.forget(claim.entry.partition)
            await asyncio.sleep(0.02)

    def forget(self, claim: TaskClaim) -> None:
        """Look for the owner of the claim's partition anew."""
        self._owners.forget(claim.entry.partition)

    async def work(self, count: int) -> int:
        """Run ``count`` tasks to success; return how many other claims were refused.

        An entry may be stale, or stand in the queue once more: what is refused was no work.
        """
        done = refused = 0
        while done < count:
            claims = await self.claim()
            for claim in claims:
                if await self._run(claim):
                    done += 1
                else:
                    refused += 1
            await self.queue.release(claims)
        return refused

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run whatever there is to success while the block lasts, each task for itself.

        So a run that gives no answer, since it is quarantined, holds up no other.
        """
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(self._serve())
            yield
            serving.cancel()

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                for claim in await self.claim():
                    tasks.create_task(self._run_and_release(claim))

    async def _run_and_release(self, claim: TaskClaim) -> None:
        await self._run(claim)
        await self.queue.release([claim])

    async def _run(self, claim: TaskClaim) -> bool:
        """Run a task to success; False if it is refused."""
        verdict = await self._fetch_at_last(claim)
        if verdict.WhichOneof("verdict") != "payload":
            return False
        await self.report(claim, pb.SUCCEEDED)
        return True

    async def _fetch_at_last(self, claim: TaskClaim) -> pb.FetchVerdict:
        """Ask until the owner gives an answer that stays."""
        while True:
            (verdict,) = await self.fetch([claim])
            if verdict.refusal.kind not in (pb.Refusal.NOT_OWNER, pb.Refusal.RETRY):
                return verdict
            self.forget(claim)
            await asyncio.sleep(0.02)

    async def _address(self, partition: int) -> str:
        while (owner := await self._owners.owner_of(partition)) is None:
            self._owners.forget(partition)
        return owner.address


def _ref(claim: TaskClaim) -> pb.AttemptRef:
    entry = claim.entry
    return pb.AttemptRef(
        workflow_instance_id=entry.workflow_instance_id,
        task_instance_id=entry.task_instance_id,
        partition=entry.partition,
    )


@asynccontextmanager
async def working(worker: HandWorker) -> AsyncIterator[None]:
    """Run whatever is queued, as patiently as a real worker."""

    async def run(claim: TaskClaim) -> None:
        while (verdict := await fetched(claim)) is None:
            await asyncio.sleep(0.02)
        if verdict.HasField("payload"):
            while not await reported(claim):
                await asyncio.sleep(0.02)
        await worker.queue.release([claim])

    async def fetched(claim: TaskClaim) -> pb.FetchVerdict | None:
        with suppress(RpcError):
            (verdict,) = await worker.fetch([claim])
            if verdict.refusal.kind not in (pb.Refusal.NOT_OWNER, pb.Refusal.RETRY):
                return verdict
        worker.forget(claim)
        return None

    async def reported(claim: TaskClaim) -> bool:
        with suppress(RpcError):
            await worker.report(claim, pb.SUCCEEDED)
            return True
        worker.forget(claim)
        return False

    async def work() -> None:
        async with asyncio.TaskGroup() as attempts:
            while True:
                for claim in await worker.claim(5):
                    attempts.create_task(run(claim))

    task = asyncio.create_task(work())
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
