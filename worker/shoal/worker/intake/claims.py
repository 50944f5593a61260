"""Claim waiting tasks for free slots, and have fetched from their masters what to run.

A worker whose tasks are short claims more than it has free slots (attempts/held.py): what is
granted then waits in the prefetch buffer for the next slot (prefetch.py).
"""

import asyncio

import structlog

from shoal.coordination import TaskQueue, ZkSession
from shoal.coordination.errors import CoordinationError, SessionLost
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.intake.fetches import Fetcher
from shoal.worker.intake.readiness import SILENCE_PAUSE_S, Readiness
from shoal.worker.masters import delay_s

log = structlog.get_logger()

LONGEST_WAIT_S = 60.0  # for the queue's notification


class Claimer:
    """Fills free slots for the life of one session: ``run`` until it is cancelled.

    ``fetcher`` asks for what to run; its calls end with ``run``.
    """

    def __init__(
        self,
        session: ZkSession,
        queue: TaskQueue,
        fetcher: Fetcher,
        attempts: HeldAttempts,
        readiness: Readiness,
        *,
        group: str,
        worker_id: str,
    ) -> None:
        self._session, self._queue, self._fetcher = session, queue, fetcher
        self._attempts, self._readiness = attempts, readiness
        self._group, self._worker_id = group, worker_id

    async def run(self) -> None:
        """Claim and fetch. Returns when the session is lost."""
        try:
            await self._claim()
        except SessionLost as lost:
            log.info("claims ended with the session", error=str(lost))
        finally:
            self._fetcher.cancel()

    async def _claim(self) -> None:
        """Claim until the session is lost. Raises SessionLost."""
        tries = 0
        while True:
            try:
                attempts = await self._claim_some()
            except CoordinationError as error:
                if isinstance(error, SessionLost):
                    raise
                # What is refused now may not be for long: the tree is made anew if it is gone.
                (log.debug if error.retriable else log.warning)("claim failed", error=str(error))
                await asyncio.sleep(delay_s(tries))  # a pause between repetitions
                tries += 1
                await self._session.connected()
            else:
                tries = 0
                if attempts:
                    self._fetcher.fetch(attempts)

    async def _claim_some(self) -> list[HeldAttempt]:
        """Claim what there is room for. Wait for room, or for an entry if the queue is empty."""
        await self._attempts.until_wanted()
        if not await self._readiness.wait():
            return []
        # The check may have taken a while, in which a master has sent more.
        if not (wanted := self._attempts.wanted):
            return []
        wanted = min(wanted, self._readiness.starts.limit or wanted)
        failpoints.hit("claim.before_multi")
        claims = await self._queue.claim(self._group, wanted, self._worker_id)
        if claims:
            failpoints.hit("claim.after_multi")
        elif self._readiness.reachability.partitions:  # whose entries wait, but not for us
            await self._readiness.reachability.changed(SILENCE_PAUSE_S)
        else:
            await self._queue.wait(self._group, timeout_s=LONGEST_WAIT_S)
        return [self._attempts.add(claim) for claim in claims]
