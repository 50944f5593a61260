"""What is requeued goes back into the queue only if its master says so, and if it is ours."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import cast

import pytest

from shoal.coordination import QueueEntry, TaskClaim
from shoal.proto import shoal_pb2 as pb
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.intake.held_claims import HeldClaims
from shoal.worker.intake.prefetch import Waiting
from shoal.worker.results.reporter import Reporter
from shoal.worker.results.requeue import Requeuer
from tests.support.waiting import eventually


class Reports:
    """Keeps what is to be reported."""

    def __init__(self) -> None:
        self.open: dict[int, pb.Report] = {}

    def add(self, worker_id: str, report: pb.Report) -> None:
        assert worker_id == "w"
        self.open[report.attempt.task_instance_id] = report

    def drop(self, task_instance_id: int) -> None:
        self.open.pop(task_instance_id, None)


class Site:
    """Requeuer, and what comes of them."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.attempts, self.reports = HeldAttempts(4), Reports()
        self.requeued: list[int] = []
        self.dropped: list[int] = []
        self.requeuer = Requeuer(
            "w",
            self.attempts,
            cast("Reporter", self.reports),
            tasks,
            cast("HeldClaims", self),
        )

    def requeue(self, attempts: Sequence[HeldAttempt]) -> None:
        self.requeued += [attempt.id for attempt in attempts]

    def release(self, attempts: Sequence[HeldAttempt]) -> None:
        self.dropped += [attempt.id for attempt in attempts]

    async def requeue_tasks(self, *numbers: int, queued_at: float = 5.0) -> list[pb.Report]:
        """Claim tasks and requeue them; return what is reported of them."""
        waiting = []
        for number in numbers:
            claim = TaskClaim(QueueEntry("default", 2, 7, 2, number, 0), "w", epoch=1, generation=1)
            payload = pb.Payload(task_instance_id=number, queued_at=queued_at)
            waiting.append(Waiting(self.attempts.add(claim), payload, 0.0))
        self.requeuer.requeue(waiting)
        await eventually(lambda: set(numbers) <= self.reports.open.keys())
        return [self.reports.open[number] for number in numbers]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with asyncio.TaskGroup() as tasks:
        yield Site(tasks)


async def test_entries_go_back_for_what_is_queued_again_and_claims_alone_for_the_rest(
    site: Site,
) -> None:
    first, second = await site.requeue_tasks(1, 2)
    assert (first.kind, first.queued_at) == (pb.RETURNED, 5.0)
    assert len(site.attempts) == 2
    site.requeuer.settled(first, True)
    site.requeuer.settled(second, False)
    assert (site.requeued, site.dropped, len(site.attempts)) == ([1], [2], 0)


async def test_answer_about_an_earlier_hold_says_nothing(site: Site) -> None:
    (old,) = await site.requeue_tasks(1)
    site.requeuer.settled(old, True)
    await site.requeue_tasks(1, queued_at=6.0)
    site.requeuer.settled(old, True)  # it was sent twice
    assert site.requeued == [1]


async def test_claims_of_a_lost_session_do_not_go_back(site: Site) -> None:
    (report,) = await site.requeue_tasks(1)
    site.requeuer.give_up()
    assert not site.reports.open
    assert len(site.attempts) == 0
    site.requeuer.settled(report, True)  # the answer was on its way
    assert site.requeued == []
