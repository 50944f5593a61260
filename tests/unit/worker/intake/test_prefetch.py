"""Slots are given in the order of the queue; what waits for one too long is requeued."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from shoal.coordination import QueueEntry, TaskClaim
from shoal.proto import shoal_pb2 as pb
from shoal.worker.attempts import held
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts, PrefetchTimes
from shoal.worker.attempts.lifecycle import AttemptEvent
from shoal.worker.intake.prefetch import PrefetchBuffer, Waiting, WaitingLines
from tests.support.waiting import eventually

NEVER_S = 1e6
PATIENT = PrefetchTimes(patience_s=NEVER_S)  # nothing is requeued because of the time


class Site:
    """A prefetch buffer, and what comes out of it.

    Unless a test says otherwise, nothing is requeued because of the time.
    """

    def __init__(
        self, slots: int = 1, prefetch: int = held.MOST, times: PrefetchTimes = PATIENT
    ) -> None:
        self.attempts = HeldAttempts(slots, prefetch, times)
        self.begun: list[int] = []
        self.requeued: list[int] = []
        self.buffer = PrefetchBuffer(self.attempts, self._begin, self._requeue)

    def claim(self, numbers: Iterable[int], priority: int = 2, lane: int = 0) -> list[HeldAttempt]:
        """Claim tasks; the smaller number comes first in the queue."""
        return [
            self.attempts.add(
                TaskClaim(
                    QueueEntry("default", priority, 7, 2, number, 0, lane),
                    "w",
                    epoch=1,
                    generation=1,
                )
            )
            for number in numbers
        ]

    def enter(self, *numbers: int, priority: int = 2, lane: int = 0) -> list[HeldAttempt]:
        """Claim tasks and let them come to the buffer, in this order."""
        entering = self.claim(numbers, priority, lane)
        for attempt in entering:
            attempt.apply(AttemptEvent.GRANT)
            self.buffer.add(attempt, pb.Payload(task_instance_id=attempt.id))
        return entering

    def succeed(self, number: int) -> None:
        """A task has ended well; its report is not answered yet."""
        attempt = self.attempts.get(number)
        assert attempt is not None
        self.attempts.end(attempt, succeeded=True)

    def end(self, number: int) -> None:
        attempt = self.attempts.get(number)
        assert attempt is not None
        self.attempts.forget(attempt)

    def _begin(self, attempt: HeldAttempt, payload: pb.Payload) -> None:
        assert payload.task_instance_id == attempt.id
        self.begun.append(attempt.id)

    def _requeue(self, leaving: Sequence[Waiting]) -> None:
        for waiting in leaving:
            self.requeued.append(waiting.attempt.id)
            self.attempts.end(waiting.attempt)


def quick_site(slots: int = 1, prefetch: int = held.MOST) -> Site:
    """A site for which every attempt is short, and one of just now."""
    return Site(slots, prefetch, replace(PATIENT, short_s=NEVER_S, window_s=NEVER_S))


async def test_slots_are_given_in_the_order_of_the_queue_and_never_too_many() -> None:
    site = Site(slots=2)
    site.enter(5, 9, 8, 7)
    assert site.begun == [5, 9]
    site.enter(3)  # more important than those that wait already
    site.end(9)
    site.end(3)
    site.end(5)
    assert site.begun == [5, 9, 3, 7, 8]
    assert site.attempts.occupied == 2


async def test_what_leaves_the_buffer_is_not_begun_and_holds_up_nothing() -> None:
    site = Site()
    _, first, second = site.enter(1, 2, 3)
    assert site.buffer.leave(first)
    assert not site.buffer.leave(first)
    site.attempts.forget(first)
    site.end(1)
    assert site.begun == [1, second.id]
    assert not site.buffer.leave(second)


async def test_what_waits_too_long_is_requeued() -> None:
    site = Site(times=PrefetchTimes(patience_s=0.01))
    site.enter(1, 2, 3)
    await eventually(lambda: site.requeued == [2, 3])
    site.enter(4)
    await eventually(lambda: site.requeued == [2, 3, 4])
    site.end(1)
    assert site.begun == [1]


async def test_worker_that_stood_still_requeues_nothing_at_once() -> None:
    site = Site(times=PrefetchTimes(patience_s=0.0, late_s=-1.0))  # every check comes too late
    site.enter(1, 2)
    timers = set()

    def checked() -> int:
        timers.add(site.buffer._timer)  # a new one for each check
        return len(timers)

    await eventually(lambda: checked() > 3)
    assert site.requeued == []
    site.buffer.close()


async def test_closed_buffer_requeues_what_waits_and_what_comes() -> None:
    site = Site()
    site.enter(1, 2)
    site.buffer.close()
    assert site.requeued == [2]
    site.end(1)
    site.enter(3)
    assert site.requeued == [2, 3]
    assert site.begun == [1]


async def test_worker_wants_as_much_ahead_as_it_has_just_ended() -> None:
    site = quick_site(slots=2)
    assert site.attempts.wanted == 2
    site.enter(1, 2)
    assert site.attempts.wanted == 0
    site.end(1)
    site.end(2)
    assert site.attempts.wanted == 4  # two slots, and two ahead
    site.enter(*range(10, 14))
    assert (site.attempts.wanted, site.attempts.occupied) == (0, 2)
    for number in range(10, 14):
        site.end(number)
    assert site.attempts.wanted == 8


async def test_worker_claims_again_when_it_is_worth_while_or_a_slot_would_stand_empty() -> None:
    site = quick_site(slots=1)
    for number in range(100):  # as many as are remembered
        site.enter(number)
        site.end(number)
    assert site.attempts.wanted == 1 + held.MOST_OF_A_SLOT
    site.enter(*range(100, 100 + 1 + held.MOST_OF_A_SLOT))
    for ended in range(held.MOST_OF_A_SLOT):
        worth_while = ended >= held.MOST_OF_A_SLOT / 2
        assert site.attempts.wanted == (ended if worth_while else 0)
        site.end(100 + ended)


@pytest.mark.parametrize(("prefetch", "wanted"), [(0, 1), (3, 4)])
async def test_never_more_is_prefetched_than_the_setting_allows(prefetch: int, wanted: int) -> None:
    site = quick_site(prefetch=prefetch)
    for number in range(100):
        site.enter(number)
        site.end(number)
    assert (site.attempts.wanted, site.attempts.room) == (wanted, wanted)


async def test_long_tasks_bring_nothing_ahead() -> None:
    site = Site(times=replace(PATIENT, short_s=0.0, window_s=NEVER_S))
    site.enter(1)
    site.end(1)
    assert site.attempts.wanted == 1


async def test_waiting_for_room_ends_when_there_is_some() -> None:
    site = Site()
    site.enter(1)
    wanting = asyncio.create_task(site.attempts.until_wanted())
    await asyncio.sleep(0)
    assert not wanting.done()
    site.end(1)
    assert await wanting >= 1


async def test_projects_take_turns_among_what_waits() -> None:
    site = Site()
    site.enter(1, 2, 3, 4, lane=5)
    site.enter(90, lane=6)
    site.enter(95, 96, lane=7, priority=3)
    site.end(1)
    assert site.begun == [1, 90]
    for number in (90, 2, 3, 4, 95):
        site.end(number)
    assert site.begun == [1, 90, 2, 3, 4, 95, 96]


@pytest.mark.parametrize("comes_late", [False, True])
async def test_urgent_chain_keeps_its_slot(comes_late: bool) -> None:
    """Less urgent tasks, whether they wait already or come just then, do not get in between."""
    site = Site()
    site.attempts.keeps_slots = True
    site.enter(1, priority=0)
    if not comes_late:
        site.enter(90, 91, priority=4)
    site.succeed(1)
    if comes_late:
        site.enter(90, 91, priority=4)
    assert site.begun == [1]
    site.enter(2, priority=0)  # it came with the answer
    site.attempts.release_slot(1)
    assert site.begun == [1, 2]
    site.succeed(2)
    assert site.begun == [1, 2]
    site.attempts.release_slot(2)  # the answer has brought nothing: others begin at once
    assert site.begun == [1, 2, 90]


async def test_slot_is_kept_for_a_moment_and_from_less_urgent_tasks_alone() -> None:
    site = Site(slots=2)
    site.attempts.keeps_slots = True
    site.enter(1, 2, priority=1)
    site.enter(80, priority=1)
    site.enter(90, priority=4)
    site.succeed(1)
    assert site.begun == [1, 2, 80]  # as urgent
    site.succeed(2)
    assert site.begun == [1, 2, 80]
    await eventually(lambda: site.begun == [1, 2, 80, 90])  # the answer does not come


async def test_without_eager_dispatch_no_slot_is_kept() -> None:
    site = Site()
    site.enter(1, priority=0)
    site.enter(90, priority=4)
    site.succeed(1)
    assert site.begun == [1, 90]


def test_lane_that_was_away_has_no_credit_among_those_that_wait_for_a_slot() -> None:
    def entries_of(lane: int, count: int) -> list[QueueEntry]:
        first = lane * 10_000
        return [QueueEntry("g", 2, n, 2, n, 0, lane) for n in range(first, first + count)]

    lines, waiting = WaitingLines(), range(100_000)
    lines.begun(entries_of(2, 1)[0])
    for entry in entries_of(1, 100):
        lines.begun(entry)  # at once: none waits
    for entry in entries_of(1, 50) + entries_of(2, 50):
        lines.add(entry)
    lanes = []
    for _ in range(20):
        first = lines.pop(waiting)
        assert first is not None
        lines.begun(first)
        lanes.append(first.lane)
    assert sorted(lanes) == [1] * 10 + [2] * 10
