"""The claims of this worker: released or requeued when attempts have ended."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import structlog

from shoal.coordination import SessionLost, TaskClaim, TaskQueue, ZkSession
from shoal.coordination.errors import CoordinationError
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt

log = structlog.get_logger()

RELEASE_PAUSE_S = 0.1  # a finished task's claim is not waited for: those of a while go together


class HeldClaims:
    """Belongs to the event loop; works in ``tasks``. A lost session takes its claims with it."""

    def __init__(self, session: ZkSession, queue: TaskQueue, tasks: asyncio.TaskGroup) -> None:
        self._session, self._queue, self._tasks = session, queue, tasks
        self._to_release: list[HeldAttempt] = []
        self._to_requeue: list[TaskClaim] = []
        self._releasing = self._requeuing = False

    def is_present(self, claim: TaskClaim) -> bool:
        """Return whether ``claim`` was made in the session of now."""
        return claim.generation == self._session.generation

    def release(self, attempts: Sequence[HeldAttempt]) -> None:
        """Release the claims of attempts that have ended, in the background.

        What ends meanwhile, or soon after, is released together.
        """
        self._to_release += attempts
        if not self._releasing:
            self._releasing = True
            self._tasks.create_task(self._release_all())

    def requeue(self, attempts: Sequence[HeldAttempt]) -> None:
        """Put attempts that have not begun into the queue, in the background."""
        self._to_requeue += [attempt.claim for attempt in attempts]
        if not self._requeuing:
            self._requeuing = True
            self._tasks.create_task(self._requeue_all())

    async def requeue_now(self, attempts: Sequence[HeldAttempt]) -> None:
        """Put attempts that no master has granted into the queue, as far as that is possible."""
        try:
            await self._queue.requeue([attempt.claim for attempt in attempts])
        except CoordinationError as error:
            log.debug("claims not requeued; they end with the session", error=str(error))

    async def lost(self) -> set[TaskClaim]:
        """Return the claims that other processes have deleted; none if that cannot be asked."""
        try:
            return set(await self._queue.lost())
        except CoordinationError as error:
            log.debug("claims not checked", error=str(error))
            return set()

    async def _release_all(self) -> None:
        try:
            while self._to_release:
                await asyncio.sleep(RELEASE_PAUSE_S)
                attempts, self._to_release = self._to_release, []
                ended = [attempt.claim for attempt in attempts if attempt.committed]
                others = [attempt.claim for attempt in attempts if not attempt.committed]
                with suppress(SessionLost):
                    failpoints.hit("claim.before_release")
                    await self._session.retry(partial(self._queue.release, ended, ended=True))
                    await self._session.retry(partial(self._queue.release, others))
                    failpoints.hit("claim.after_release")
        finally:
            self._releasing = False

    async def _requeue_all(self) -> None:
        try:
            while self._to_requeue:
                claims, self._to_requeue = self._to_requeue, []
                with suppress(SessionLost):  # the masters put them back
                    failpoints.hit("requeue.before_put")
                    await self._session.retry(partial(self._queue.requeue, claims))
                    failpoints.hit("requeue.after_put")
        finally:
            self._requeuing = False
