"""Claim waiting tasks for free slots, and fetch from their masters what to run.

From the claim on the task is ours alone, and nobody else will look after it while our session
lives. So fetching is repeated until a master has answered, however long that takes; only the end
of the session, a kill or the end of this worker stops it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence

import structlog

from shoal.coordination import TaskQueue, ZkSession
from shoal.coordination.errors import CoordinationError, SessionLost
from shoal.core import failpoints
from shoal.proto import shoal_pb2 as pb
from shoal.proto.errors import RpcError
from shoal.worker.agent_attempts import Attempt, Attempts
from shoal.worker.agent_masters import Masters, delay_s
from shoal.worker.disk import DiskGuard

log = structlog.get_logger()

LONGEST_WAIT_S = 60.0  # for the queue's bell
MOST_AT_ONCE = 64  # payloads in one call
SAY_SO_AFTER = 6  # tries; then it is worth a warning


class Claimer:
    """Fills free slots for the life of one session: ``run`` until it is cancelled.

    ``on_payload`` takes over an attempt that was granted, ``on_refused`` one that nobody wants to
    run any more.
    """

    def __init__(
        self,
        session: ZkSession,
        queue: TaskQueue,
        masters: Masters,
        attempts: Attempts,
        disk: DiskGuard,
        *,
        group: str,
        worker_id: str,
        on_payload: Callable[[Attempt, pb.Payload], None],
        on_refused: Callable[[Attempt], None],
    ) -> None:
        self._session, self._queue, self._masters = session, queue, masters
        self._attempts, self._disk = attempts, disk
        self._group, self._worker_id = group, worker_id
        self._on_payload, self._on_refused = on_payload, on_refused

    async def run(self) -> None:
        """Claim and fetch. Returns when the session is lost."""
        try:
            async with asyncio.TaskGroup() as fetches:
                await self._claim(fetches)
        except* SessionLost as lost:
            log.info("claims ended with the session", error=str(lost.exceptions[0]))

    async def _claim(self, fetches: asyncio.TaskGroup) -> None:
        """Claim until the session is lost. Raises SessionLost, which ends all fetching, too."""
        tries = 0
        while True:
            try:
                attempts = await self._claim_some()
            except CoordinationError as error:
                if not error.retriable:
                    raise
                log.debug("claim failed", error=str(error))
                await asyncio.sleep(delay_s(tries))  # a pause between repetitions
                tries += 1
                await self._session.connected()
            else:
                tries = 0
                if attempts:
                    fetches.create_task(self._fetch(fetches, attempts, 0))

    async def _claim_some(self) -> list[Attempt]:
        """Claim for all free slots; wait for slots or the queue's bell if nothing is to be had."""
        if not self._attempts.free:
            await self._attempts.changed()
            return []
        await self._disk.enough()
        failpoints.hit("claim.before_multi")
        claims = await self._queue.claim(self._group, self._attempts.free, self._worker_id)
        if claims:
            failpoints.hit("claim.after_multi")
        else:
            await self._queue.wait(self._group, timeout_s=LONGEST_WAIT_S)
        return [self._attempts.add(claim) for claim in claims]

    async def _fetch(
        self, fetches: asyncio.TaskGroup, attempts: Sequence[Attempt], tries: int
    ) -> None:
        """Ask the owners for the payloads of ``attempts``."""
        addresses = await self._masters.addresses(a.claim.entry.partition for a in attempts)
        batches: dict[str | None, list[Attempt]] = defaultdict(list)
        for attempt in attempts:
            batches[addresses.get(attempt.claim.entry.partition)].append(attempt)
        # Smaller after every failure: an answer has to fit into one message.
        size = max(1, MOST_AT_ONCE >> tries)
        for address, batch in batches.items():
            for start in range(0, len(batch), size):
                some = batch[start : start + size]
                fetches.create_task(self._ask(fetches, address, some, tries))

    async def _ask(
        self,
        fetches: asyncio.TaskGroup,
        address: str | None,
        attempts: Sequence[Attempt],
        tries: int,
    ) -> None:
        """Ask one owner; begin again with those that it did not decide upon."""
        if address is None:
            left, why = list(attempts), "the partition has no owner"
        else:
            left, why = await self._request(address, attempts)
        left = [attempt for attempt in left if attempt.unwanted is None]
        if not left:
            return
        self._masters.forget(attempt.claim.entry.partition for attempt in left)
        if tries == SAY_SO_AFTER:
            some = [attempt.id for attempt in left[:20]]
            log.warning("claimed tasks wait for a master", task_instances=some, reason=why)
        await asyncio.sleep(delay_s(tries))  # a pause between repetitions
        fetches.create_task(self._fetch(fetches, left, tries + 1))

    async def _request(
        self, address: str, attempts: Sequence[Attempt]
    ) -> tuple[list[Attempt], str]:
        """Return the attempts without a decision, and why there is none."""
        request = pb.FetchRequest(
            worker_id=self._worker_id, attempts=[attempt.ref for attempt in attempts]
        )
        try:
            failpoints.hit("fetch.before_call")
            response = await self._masters.fetch(address, request)
            failpoints.hit("fetch.after_call")
        except RpcError as error:
            return list(attempts), str(error)
        verdicts = {verdict.task_instance_id: verdict for verdict in response.verdicts}
        left, why = [], "the master gave no verdict"
        for attempt in attempts:
            if attempt.over.is_set():
                continue  # killed while we asked
            verdict = verdicts.get(attempt.id, pb.FetchVerdict())
            if verdict.HasField("payload"):
                attempt.granted = True
                self._on_payload(attempt, verdict.payload)
            elif verdict.refusal.kind == pb.Refusal.SUPERSEDED:
                log.info("task superseded", task_instance=attempt.id, why=verdict.refusal.reason)
                self._on_refused(attempt)
            else:
                left.append(attempt)
                why = verdict.refusal.reason or why
        return left, why
