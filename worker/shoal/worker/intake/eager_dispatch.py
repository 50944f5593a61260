"""Take tasks over with the answer to a report, without the queue.

While a worker reports an end it still holds the claim of that attempt. With the report it says
how many more tasks it would take, and the master grants those directly behind with its answer.
Each starts at once; meanwhile its claim takes the place of the reported one's, in one step, and
until that is done its own end is not reported (``Reporter`` asks ``is_coming``), for the next one
may be granted upon its claim.

A grant is taken only while the claim that it rests upon is ours in a session that is alive, and
only once: a report that is repeated brings the same again, and an answer can be late.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any

import structlog

from shoal.coordination import QueueEntry, TaskClaim, TaskQueue, ZkSession
from shoal.coordination.errors import CoordinationError
from shoal.proto import shoal_pb2 as pb
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.intake.fetches import Fetcher
from shoal.worker.intake.readiness import Readiness

log = structlog.get_logger()

KEEP_S = 0.1  # a free slot waits for the answer to a report, if answers bring tasks
CLAIM_LOST = "its claim could not be taken over"


class EagerDispatch:
    """What one worker takes over. Belongs to its loop; runs in ``tasks``.

    ``fetcher`` takes what is granted.
    """

    def __init__(
        self,
        session: ZkSession,
        queue: TaskQueue,
        attempts: HeldAttempts,
        tasks: asyncio.TaskGroup,
        fetcher: Fetcher,
        readiness: Readiness,
        *,
        group: str,
        worker_id: str,
        keep_s: float = KEEP_S,
    ) -> None:
        self._keep_s = keep_s
        self._session, self._queue, self._attempts = session, queue, attempts
        self._tasks, self._fetcher, self._readiness = tasks, fetcher, readiness
        self._group, self.worker_id = group, worker_id
        self._coming: set[int] = set()  # task instances whose claims are on their way
        self._past = _Past()
        self._reading: asyncio.Task[None] | None = None
        self._offered = 0  # tasks that masters may grant with the answers that are awaited
        self._likely = False  # the latest answer brought something
        self._on_come: list[Callable[[], None]] = []
        self._interrupt: Callable[[HeldAttempt, str], None] = lambda attempt, why: None
        attempts.when_forgotten(self._forgotten)
        attempts.keeps_slots = True

    def subscribe(self, on_come: Callable[[], None]) -> None:
        """Have ``on_come`` called when claims have come, or will not."""
        self._on_come.append(on_come)

    def when_claim_is_lost(self, interrupt: Callable[[HeldAttempt, str], None]) -> None:
        """Have ``interrupt`` called with an attempt whose claim could not be taken over."""
        self._interrupt = interrupt

    # -- reports ----------------------------------------------------------------------------

    def is_coming(self, task_instance_id: int) -> bool:
        """Return whether its claim is on its way: its end is not to be reported yet."""
        return task_instance_id in self._coming

    def reported(self, ref: pb.AttemptRef) -> None:
        """An end is to be reported, until ``settled``. For a moment what follows has its slot."""
        self._past.open(ref)
        if self._likely:
            own = ref.task_instance_id
            self._attempts.reserve_slot(own)
            asyncio.get_running_loop().call_later(self._keep_s, self._attempts.release_slot, own)

    def settled(self, ref: pb.AttemptRef) -> None:
        """An end is no longer reported."""
        self._past.close(ref)
        self._attempts.release_slot(ref.task_instance_id)

    def _forgotten(self, attempt: HeldAttempt) -> None:
        """The worker no longer holds ``attempt``."""
        self._past.note(attempt.ref)

    def refuse(self, ref: pb.AttemptRef) -> None:
        """Do not take this attempt, which the worker does not hold, from a late answer either."""
        self._past.note(ref)

    def request(self, ends: Collection[int]) -> pb.EagerRequest:
        """Return what goes with a report of the ends of these task instances.

        Has to be followed by ``request_done`` when the answer was taken, or there is none.
        """
        first, is_first = self._queue.front(self._group)
        if not is_first and (self._reading is None or self._reading.done()):
            self._reading = self._tasks.create_task(self._read_once())  # for the next request
        request = pb.EagerRequest(group=self._group)
        if self._readiness.takes_tasks and is_first and all(map(self._claim_of, ends)):
            request.room = max(len(ends), self._attempts.room - self._offered)
            self._offered += request.room
        if first is not None:
            request.before.CopyFrom(
                pb.Place(
                    workflow_priority=first.workflow_priority,
                    workflow_instance_id=first.workflow_instance_id,
                    task_priority=first.task_priority,
                    task_instance_id=first.task_instance_id,
                    lane=first.lane,
                )
            )
        return request

    def request_done(self, request: pb.EagerRequest) -> None:
        """What was offered is taken, or will not be."""
        self._offered -= request.room

    async def _read_once(self) -> None:
        try:
            await self._queue.refresh(self._group)
        except CoordinationError as error:
            log.debug("queue not read", error=str(error))

    # -- grants -----------------------------------------------------------------------------

    def take(self, grants: Collection[pb.EagerTask]) -> None:
        """Take over what a master has granted with an answer, perhaps nothing.

        Has to be called before the reports that were answered are settled.
        """
        self._likely = bool(grants)
        moves: defaultdict[TaskClaim, list[TaskClaim]] = defaultdict(list)
        to_fetch = []
        for grant in grants:
            before = self._claim_to_take(grant)
            if before is None:
                continue
            entry = _entry(self._group, grant)
            attempt = self._attempts.add(TaskClaim(entry, self.worker_id, 0, before.generation))
            moves[before].append(attempt.claim)
            self._coming.add(attempt.id)
            if grant.HasField("payload"):
                self._fetcher.grant(attempt, grant.payload)
            else:
                to_fetch.append(attempt)
        if moves:
            failpoints.hit("eager.before_multi")
            moving = self._queue.transfer(moves)
            self._tasks.create_task(self._see_through(moves, moving))
        if to_fetch:
            self._fetcher.fetch(to_fetch)

    def _claim_to_take(self, grant: pb.EagerTask) -> TaskClaim | None:
        """Return the claim that a grant rests upon, None if it is not to be taken."""
        own = grant.attempt.task_instance_id
        if self._attempts.get(own) is not None or self._past.knows(grant.attempt):
            return None  # we have it already, or had it
        before = self._claim_of(grant.behind)
        if self._session.is_proven and before is not None:
            return before
        log.info("grant not taken: the claim before it is gone", task_instance=own)
        return None

    def _claim_of(self, task_instance_id: int) -> TaskClaim | None:
        """Return the claim that we hold for an attempt, as far as we know."""
        attempt = self._attempts.get(task_instance_id)
        if attempt is None or not self._queue.holds(attempt.claim):
            return None
        return attempt.claim

    async def _see_through(
        self,
        moves: Mapping[TaskClaim, Sequence[TaskClaim]],
        moving: Coroutine[Any, Any, set[TaskClaim]],
    ) -> None:
        """Return when the new claims have taken the place of those before them."""
        standing = await moving
        failpoints.hit("eager.after_multi")
        new = {claim for some in moves.values() for claim in some}
        self._coming -= {claim.task_instance_id for claim in new}
        for notify in self._on_come:
            notify()
        for claim in new - standing:
            attempt = self._attempts.get(claim.task_instance_id)
            lives = claim.generation == self._session.generation  # else all of it dies anyway
            if attempt is not None and attempt.claim is claim and lives:
                self._interrupt(attempt, CLAIM_LOST)


class _Past:
    """Which attempts were here while others of their instance were being reported.

    A late answer to one of those reports may grant them again.
    """

    def __init__(self) -> None:
        self._open: Counter[int] = Counter()  # reports, by workflow instance
        self._gone: defaultdict[int, set[int]] = defaultdict(set)  # task instances, in the same way

    def open(self, ref: pb.AttemptRef) -> None:
        self._open[ref.workflow_instance_id] += 1

    def close(self, ref: pb.AttemptRef) -> None:
        self._open[ref.workflow_instance_id] -= 1
        if not self._open[ref.workflow_instance_id]:
            del self._open[ref.workflow_instance_id]
            self._gone.pop(ref.workflow_instance_id, None)

    def note(self, ref: pb.AttemptRef) -> None:
        """An attempt was here, and has gone."""
        if ref.workflow_instance_id in self._open:
            self._gone[ref.workflow_instance_id].add(ref.task_instance_id)

    def knows(self, ref: pb.AttemptRef) -> bool:
        return ref.task_instance_id in self._gone.get(ref.workflow_instance_id, ())


def _entry(group: str, grant: pb.EagerTask) -> QueueEntry:
    place = grant.place
    return QueueEntry(
        group,
        place.workflow_priority,
        place.workflow_instance_id,
        place.task_priority,
        place.task_instance_id,
        grant.attempt.partition,
        place.lane,
    )
