"""Fetch from the masters what claimed attempts are to run.

From the claim on the task is ours alone, and no other process sees to it while we hold it. So
fetching is repeated until a master has answered; only the end of the session, a kill, the end of
this worker, or that of its patience stops it.

A call costs much more than one attempt more in it. So what is claimed while ``CALLS_AT_ONCE``
calls to the same master are under way waits and goes with the next one together.

A claim whose masters do not answer in time is released, so that it takes no slot and others may run
the task. Nothing else is done: what becomes of the task is the decision of its partition's owner,
which alone knows whether the request for it was carried out and only the answer was lost.

- *It was not.* The attempt is QUEUED, in no queue and in no claim: the sweeper queues it again.
- *It was.* The attempt is CLAIMED by us without a claim: the sweeper declares it LOST, and another
  attempt follows. None of its retries is used up.

Nothing of it has run here, and nothing will: an attempt that is over takes no payload, however late
the answer comes. Putting the entry back by ourselves would be wrong: the worker could claim it
again, and be granted what it holds already, while a sweeper that has not seen the new claim
declares it lost.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import structlog

from shoal.proto import shoal_pb2 as pb
from shoal.proto.errors import RpcError
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.attempts.lifecycle import AttemptEvent
from shoal.worker.masters import Masters, delay_s

log = structlog.get_logger()

MOST_AT_ONCE = 64  # payloads in one call
CALLS_AT_ONCE = 2  # to one master: while it stores what one asks for, the other is on its way
CHECKS = 4  # for unanswered claims, in the time of the patience
SAY_SO_AFTER = 6  # tries; then it is worth a warning


class _Line:
    """Attempts that wait to be asked for, at one address and after the same number of tries."""

    def __init__(self) -> None:
        self.waiting: list[HeldAttempt] = []
        self.calls = 0  # under way


class Fetcher:
    """Asks for the payloads of attempts. Its calls run in ``tasks``.

    ``on_payload`` takes over an attempt that was granted, ``on_refused`` one that must no
    longer run. What is over meanwhile is not asked for again.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        masters: Masters,
        worker_id: str,
        on_payload: Callable[[HeldAttempt, pb.Payload], None],
        on_refused: Callable[[HeldAttempt], None],
    ) -> None:
        self._tasks, self._masters, self._worker_id = tasks, masters, worker_id
        self._on_payload, self._on_refused = on_payload, on_refused
        self._lines: defaultdict[tuple[str, int], _Line] = defaultdict(_Line)  # address, tries
        self._running: set[asyncio.Task[None]] = set()

    def grant(self, attempt: HeldAttempt, payload: pb.Payload) -> None:
        """Hand over an attempt that a master has granted."""
        attempt.apply(AttemptEvent.GRANT)
        self._on_payload(attempt, payload)

    def fetch(self, attempts: Sequence[HeldAttempt]) -> None:
        """Ask the owners for the payloads of ``attempts``, until they have decided."""
        self._spawn(self._enqueue(attempts, 0))

    def cancel(self) -> None:
        """Ask no more for any of the present attempts: all without a payload are given up."""
        for task in self._running:
            task.cancel()
        self._lines.clear()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _enqueue(self, attempts: Sequence[HeldAttempt], tries: int) -> None:
        """Let each wait for a call to its owner; without one, try again later."""
        addresses = await self._masters.addresses(a.claim.entry.partition for a in attempts)
        without_owner = []
        for attempt in attempts:
            address = addresses.get(attempt.claim.entry.partition)
            if address is None:
                without_owner.append(attempt)
            else:
                self._lines[address, tries].waiting.append(attempt)
        for address in set(addresses.values()):
            self._call_next(address, tries)
        if without_owner:
            await self._again(without_owner, tries, "the partition has no owner")

    def _call_next(self, address: str, tries: int) -> None:
        """Begin as many calls as there may be."""
        line = self._lines[address, tries]
        line.waiting = [attempt for attempt in line.waiting if not attempt.over.is_set()]
        # Smaller after every failure: an answer has to fit into one message.
        size = max(1, MOST_AT_ONCE >> tries)
        while line.waiting and line.calls < CALLS_AT_ONCE:
            some, line.waiting = line.waiting[:size], line.waiting[size:]
            line.calls += 1
            self._spawn(self._ask(address, some, tries))
        if not line.calls:
            del self._lines[address, tries]

    async def _ask(self, address: str, attempts: Sequence[HeldAttempt], tries: int) -> None:
        """Make one call; begin again with those that the owner did not decide upon."""
        line = self._lines[address, tries]
        try:
            left, why = await self._request(address, attempts)
        except RpcError as error:
            # Attempts that wait for the same master would get the same answer.
            left, why = [*attempts, *line.waiting], str(error)
            line.waiting = []
        line.calls -= 1
        self._call_next(address, tries)
        await self._again(left, tries, why)

    async def _again(self, attempts: Sequence[HeldAttempt], tries: int, why: str) -> None:
        left = [attempt for attempt in attempts if not attempt.over.is_set()]
        if not left:
            return
        self._masters.forget(attempt.claim.entry.partition for attempt in left)
        if tries == SAY_SO_AFTER:
            some = [attempt.id for attempt in left[:20]]
            log.warning("claimed tasks wait for a master", task_instances=some, reason=why)
        await asyncio.sleep(delay_s(tries))  # a pause between repetitions
        self._spawn(self._enqueue(left, tries + 1))

    async def _request(
        self, address: str, attempts: Sequence[HeldAttempt]
    ) -> tuple[list[HeldAttempt], str]:
        """Return the attempts without a decision, and why there is none. Raises RpcError."""
        request = pb.FetchRequest(
            worker_id=self._worker_id, attempts=[attempt.ref for attempt in attempts]
        )
        failpoints.hit("fetch.before_call")
        response = await self._masters.fetch(address, request)
        failpoints.hit("fetch.after_call")
        verdicts = {verdict.task_instance_id: verdict for verdict in response.verdicts}
        left, why = [], "the master gave no verdict"
        for attempt in attempts:
            if attempt.over.is_set():
                continue  # killed while we asked
            verdict = verdicts.get(attempt.id, pb.FetchVerdict())
            if verdict.HasField("payload"):
                self.grant(attempt, verdict.payload)
            elif verdict.refusal.kind == pb.Refusal.SUPERSEDED:
                log.info("task superseded", task_instance=attempt.id, why=verdict.refusal.reason)
                self._on_refused(attempt)
            else:
                left.append(attempt)
                why = verdict.refusal.reason or why
        return left, why


async def give_up_unanswered(
    attempts: HeldAttempts,
    masters: Masters,
    patience_s: float,
    refuse: Callable[[HeldAttempt], None],
) -> None:
    """Call ``refuse`` with each attempt that no master has granted for ``patience_s``, for ever."""
    while True:
        await attempts.until_any()
        await asyncio.sleep(patience_s / CHECKS)
        claimed_before = time.monotonic() - patience_s
        old = [a for a in attempts.live if not a.granted and a.claimed_at < claimed_before]
        if not old:
            continue
        some = [attempt.id for attempt in old[:20]]
        log.warning("claims released: no master answers", task_instances=some, count=len(old))
        masters.suspect(attempt.claim.entry.partition for attempt in old)
        failpoints.hit("fetch.before_give_up")
        for attempt in old:
            refuse(attempt)
