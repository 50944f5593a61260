"""Tasks that come with the answer to a report: which are taken, and what their claims hold up."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any, cast

from shoal.coordination import QueueEntry, TaskClaim, TaskQueue, ZkSession
from shoal.proto import shoal_pb2 as pb
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.intake import eager_dispatch
from shoal.worker.intake.eager_dispatch import EagerDispatch
from shoal.worker.intake.fetches import Fetcher
from shoal.worker.intake.readiness import Readiness
from shoal.worker.masters import Masters
from shoal.worker.results.reporter import Reporter
from tests.support.waiting import DEADLINE_S, eventually

WORKER = "w"
NEVER_S = 1e6


class Session:
    """One that lives, until it does not."""

    def __init__(self) -> None:
        self.is_proven, self.generation = True, 1


class Queue:
    """Holds the claims ``held``; hands them on while ``open``."""

    def __init__(self, *held: int) -> None:
        self.held = set(held)
        self.first: QueueEntry | None = None
        self.is_first = True
        self.reads = 0
        self.moves: list[dict[int, list[int]]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.works = True

    def front(self, _group: str) -> tuple[QueueEntry | None, bool]:
        return self.first, self.is_first

    async def refresh(self, _group: str) -> None:
        self.reads += 1

    def holds(self, claim: TaskClaim) -> bool:
        return claim.task_instance_id in self.held

    def transfer(
        self, moves: Mapping[TaskClaim, Sequence[TaskClaim]]
    ) -> Coroutine[Any, Any, set[TaskClaim]]:
        self.moves.append(
            {
                old.task_instance_id: [new.task_instance_id for new in some]
                for old, some in moves.items()
            }
        )
        return self._move(moves)

    async def _move(self, moves: Mapping[TaskClaim, Sequence[TaskClaim]]) -> set[TaskClaim]:
        await self.open.wait()
        if not self.works:
            return set()
        new = {each for some in moves.values() for each in some}
        assert {claim.worker_id for claim in new} == {WORKER}
        self.held -= {old.task_instance_id for old in moves}
        self.held |= {claim.task_instance_id for claim in new}
        return new


class Master:
    """Commits everything; grants behind each end what ``behind`` says, each time it is asked."""

    def __init__(self, behind: Mapping[int, Collection[int]] | None = None) -> None:
        self.behind = behind or {}
        self.calls: list[pb.ReportRequest] = []

    async def addresses(self, partitions: Iterable[int]) -> dict[int, str]:
        return dict.fromkeys(partitions, "somewhere:1")

    async def report(self, _address: str, request: pb.ReportRequest) -> pb.ReportResponse:
        self.calls.append(request)
        numbers = [report.attempt.task_instance_id for report in request.reports]
        return pb.ReportResponse(
            verdicts=[
                pb.ReportVerdict(task_instance_id=n, kind=pb.ReportVerdict.COMMITTED)
                for n in numbers
            ],
            eager_tasks=[
                eager_task(new, old) for old in numbers for new in self.behind.get(old, ())
            ],
        )

    def ends(self) -> list[int]:
        return [r.attempt.task_instance_id for call in self.calls for r in call.reports]


def ref(number: int) -> pb.AttemptRef:
    return pb.AttemptRef(workflow_instance_id=7, task_instance_id=number)


def eager_task(number: int, behind: int, *, payload: bool = True) -> pb.EagerTask:
    place = pb.Place(
        workflow_priority=2, workflow_instance_id=7, task_priority=2, task_instance_id=number
    )
    made = pb.Payload(task_instance_id=number) if payload else None
    return pb.EagerTask(behind=behind, attempt=ref(number), place=place, payload=made)


def end(number: int, kind: "pb.ReportKind.ValueType" = pb.SUCCEEDED) -> pb.Report:
    return pb.Report(attempt=ref(number), kind=kind)


class Site:
    """A worker without processes: what it started, asked for and interrupted."""

    def __init__(
        self, queue: Queue, master: Master, tasks: asyncio.TaskGroup, keep_s: float
    ) -> None:
        self.session, self.queue, self.attempts = Session(), queue, HeldAttempts(3)
        self.started: list[int] = []
        self.fetched: list[int] = []
        self.interrupted: list[int] = []
        self.takes_tasks = True
        self.when_granted: Callable[[int], None] = self.started.append
        self.eager_dispatch = EagerDispatch(
            cast("ZkSession", self.session),
            cast("TaskQueue", queue),
            self.attempts,
            tasks,
            cast("Fetcher", self),
            cast("Readiness", self),
            group="default",
            worker_id=WORKER,
            keep_s=keep_s,
        )
        self.eager_dispatch.when_claim_is_lost(
            lambda attempt, _reason: self.interrupted.append(attempt.id)
        )
        self.reporter = Reporter(cast("Masters", master))
        self.reporter.subscribe(self._settled)
        self.reporter.attach(self.eager_dispatch)
        for number in sorted(queue.held):
            if number < 10:  # the others will come
                self.attempts.end(self.hold(number))

    def grant(self, attempt: HeldAttempt, _payload: pb.Payload) -> None:
        self.when_granted(attempt.id)

    def fetch(self, attempts: Sequence[HeldAttempt]) -> None:
        self.fetched += [attempt.id for attempt in attempts]

    def hold(self, number: int) -> HeldAttempt:
        return self.attempts.add(TaskClaim(QueueEntry("default", 2, 7, 2, number, 0), WORKER, 1, 1))

    def _settled(self, report: pb.Report, _committed: bool) -> None:
        if (attempt := self.attempts.get(report.attempt.task_instance_id)) is not None:
            self.attempts.forget(attempt)


@asynccontextmanager
async def site_of(
    queue: Queue, master: Master | None = None, keep_s: float = eager_dispatch.KEEP_S
) -> AsyncIterator[Site]:
    async with asyncio.TaskGroup() as tasks:
        site = Site(queue, master or Master(), tasks, keep_s)
        running = tasks.create_task(site.reporter.run())
        async with asyncio.timeout(DEADLINE_S):
            yield site
        running.cancel()


async def test_what_is_granted_starts_at_once_and_its_claim_follows() -> None:
    master = Master({1: [10, 11]})
    queue = Queue(1)
    queue.open.clear()
    async with site_of(queue, master) as site:
        site.reporter.add(WORKER, end(1))
        await eventually(lambda: site.started)
        assert site.started == [10, 11]
        assert queue.moves == [{1: [10, 11]}]
        assert (master.calls[0].eager.group, master.calls[0].eager.room) == ("default", 3)
        queue.open.set()


async def test_end_waits_until_the_claim_of_its_own_has_come() -> None:
    """Else the next one would be dispatched upon a claim that is not there."""
    master = Master({1: [10]})
    queue = Queue(1, 2)
    queue.open.clear()
    async with site_of(queue, master) as site:
        site.reporter.add(WORKER, end(1))
        await eventually(lambda: site.started)
        site.reporter.add(WORKER, end(10))
        site.reporter.add(WORKER, end(2))
        await eventually(lambda: 2 in master.ends())
        assert master.ends() == [1, 2]
        queue.open.set()
        await site.reporter.drained()
    assert master.ends() == [1, 2, 10]


async def test_as_much_is_taken_as_has_just_ended_at_least() -> None:
    master = Master()
    async with site_of(Queue(*range(5)), master) as site:
        for number in (100, 101, 102):
            site.hold(number)
        for number in range(5):
            site.reporter.add(WORKER, end(number))
        await site.reporter.drained()
    assert sum(call.eager.room for call in master.calls) == 5


async def test_room_is_not_offered_twice() -> None:
    async with site_of(Queue(1, 2)) as site:
        first = site.eager_dispatch.request([1])
        second = site.eager_dispatch.request(
            [2]
        )  # to another master, before the first has answered
        assert (first.room, second.room) == (3, 1)  # what has just ended leaves room in any case
        site.eager_dispatch.request_done(second)
        site.eager_dispatch.request_done(first)
        assert site.eager_dispatch.request([2]).room == 3


async def test_nothing_is_offered_that_cannot_be_kept() -> None:
    master = Master()
    queue = Queue(1, 2, 3)
    async with site_of(queue, master) as site:
        site.takes_tasks = False  # it stops, or is short of disk
        site.reporter.add(WORKER, end(1))
        await site.reporter.drained()
        site.takes_tasks = True
        queue.is_first = False  # a notification came
        site.reporter.add(WORKER, end(2))
        await site.reporter.drained()
        await eventually(lambda: queue.reads)
        queue.is_first = True
        site.reporter.add(WORKER, end(4))  # its claim went with a session
        await site.reporter.drained()
        assert [call.eager.room for call in master.calls] == [0, 0, 0]
        site.reporter.add("an earlier life", end(5))
        site.reporter.add(WORKER, end(3, pb.FAILED))
        await site.reporter.drained()
    assert not any(call.HasField("eager") for call in master.calls[3:])


async def test_first_that_waits_is_told() -> None:
    master = Master()
    queue = Queue(1, 2)
    async with site_of(queue, master) as site:
        site.reporter.add(WORKER, end(1))
        await site.reporter.drained()
        queue.first = QueueEntry("default", 1, 5, 3, 77, 0)
        site.reporter.add(WORKER, end(2))
        await site.reporter.drained()
    assert not master.calls[0].eager.HasField("before")
    assert master.calls[1].eager.before == pb.Place(
        workflow_priority=1, workflow_instance_id=5, task_priority=3, task_instance_id=77
    )


async def test_all_is_reported_only_when_what_came_with_the_last_answer_is() -> None:
    """As a worker that stops has to return what comes all the same."""
    master = Master({1: [10]})
    async with site_of(Queue(1), master) as site:

        def requeue(number: int) -> None:
            returned = end(number, pb.RETURNED)
            asyncio.get_running_loop().call_soon(site.reporter.add, WORKER, returned)

        site.when_granted = requeue
        site.reporter.add(WORKER, end(1))
        await site.reporter.drained()
        assert len(site.reporter) == 0
    assert master.ends() == [1, 10]


async def test_grant_is_taken_once() -> None:
    """Two ends may bring the same; one that was here and has ended is not run again either."""
    master = Master({1: [10], 2: [10], 3: [10]})
    queue = Queue(1, 2, 3)
    async with site_of(queue, master) as site:
        site.reporter.add(WORKER, end(1))
        await eventually(lambda: 10 in queue.held)
        site.eager_dispatch.take([eager_task(10, behind=2)])
        assert site.started == [10]
        site.eager_dispatch.reported(ref(3))  # and not answered for long
        site.reporter.add(WORKER, end(10))
        await site.reporter.drained()
        site.eager_dispatch.take([eager_task(10, behind=3)])
        assert site.started == [10]
        site.eager_dispatch.settled(ref(3))
        site.eager_dispatch.take(
            [eager_task(10, behind=2)]
        )  # nothing is remembered without a reason
        assert site.started == [10, 10]


async def test_what_was_disowned_is_not_taken() -> None:
    """A master has asked what is left of an attempt, while an answer that grants it was late."""
    async with site_of(Queue(1)) as site:
        site.eager_dispatch.reported(ref(1))
        site.eager_dispatch.refuse(ref(10))
        site.eager_dispatch.take([eager_task(10, behind=1), eager_task(11, behind=1)])
        assert site.started == [11]
        site.eager_dispatch.settled(ref(1))


async def test_grant_upon_a_claim_of_a_lost_session_is_not_taken() -> None:
    async with site_of(Queue(1)) as site:
        site.attempts.end(site.hold(2))  # whose claim the queue does not know any more
        site.eager_dispatch.take([eager_task(10, behind=2)])
        site.session.is_proven = False
        site.eager_dispatch.take([eager_task(11, behind=1)])
        assert site.started == []
        assert (site.attempts.get(10), site.attempts.get(11)) == (None, None)


async def test_slot_is_kept_for_what_is_likely_to_follow() -> None:
    master = Master({1: [10]})
    async with site_of(Queue(1, 2, 3, 10), master, keep_s=NEVER_S) as site:
        site.reporter.add(WORKER, end(1))
        assert site.attempts.wanted == 3  # nothing is known yet: any slot is to be filled
        await eventually(lambda: site.started)
        site.reporter.add(WORKER, end(10))
        assert site.attempts.wanted == 1  # one is taken, and one kept
        await site.reporter.drained()
        assert site.attempts.wanted == 3
        site.reporter.add(WORKER, end(2))
        assert site.attempts.wanted == 3  # for the latest answer brought nothing
        await site.reporter.drained()


async def test_slot_is_not_kept_for_long() -> None:
    async with site_of(Queue(1), keep_s=0.0) as site:
        site.eager_dispatch.take([eager_task(10, behind=1)])
        site.eager_dispatch.reported(ref(5))  # and not answered for long
        site.hold(20)
        assert site.attempts.wanted == 0
        async with asyncio.timeout(DEADLINE_S):
            assert await site.attempts.until_wanted() == 1
        site.eager_dispatch.settled(ref(5))


async def test_grant_without_a_payload_is_fetched() -> None:
    async with site_of(Queue(1)) as site:
        site.eager_dispatch.take(
            [eager_task(10, behind=1, payload=False), eager_task(11, behind=1)]
        )
        assert (site.fetched, site.started) == ([10], [11])
        fetched = site.attempts.get(10)
        assert fetched is not None
        assert not fetched.granted


async def test_task_whose_claim_is_not_to_be_had_is_ended() -> None:
    queue = Queue(1, 2)
    queue.works = False
    async with site_of(queue) as site:
        site.eager_dispatch.take([eager_task(10, behind=1)])
        await eventually(lambda: site.interrupted)
        assert site.interrupted == [10]
        site.eager_dispatch.take([eager_task(20, behind=2)])
        site.session.generation += 1  # then all that it had dies anyway
        await eventually(lambda: not site.eager_dispatch.is_coming(20))
    assert site.interrupted == [10]
