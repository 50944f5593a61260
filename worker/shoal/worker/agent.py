"""The worker agent: member of the cluster, claims tasks, runs them, reports.

The processes themselves belong to the launcher, which obeys a *lease* (``processes/lease.py``):
when this worker's session can have ended, everything is killed, whether this agent acts or not.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from shoal.coordination import Membership, ZkSession
from shoal.worker.attempts.held import HeldAttempts
from shoal.worker.execution.runner import CLAIM_GONE, Runner
from shoal.worker.intake.claims import Claimer
from shoal.worker.intake.held_claims import HeldClaims
from shoal.worker.intake.presence import Presence
from shoal.worker.settings import WorkerSettings

log = structlog.get_logger()

CLAIMS_CHECK_S = 2.0  # between checks whether our claims still stand: two requests each
STOPPED = "the worker was stopped"
SESSION_LOST = "the worker lost its ZooKeeper session"


@dataclass(frozen=True)
class Lifetime:
    """When a worker begins and ends.

    ``stop``: it is to leave in order; ``at_once`` cuts that short. ``ready`` is set when the worker
    is registered.
    """

    stop: asyncio.Event
    at_once: asyncio.Event
    ready: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Loops:
    """What else works beside the agent: always, and until the worker is to leave.

    ``farewells`` are the last things that a worker does, each with its limit in seconds.
    """

    always: Sequence[Callable[[], Coroutine[Any, Any, None]]]
    until_stop: Sequence[Callable[[], Coroutine[Any, Any, None]]]
    farewells: Sequence[tuple[Callable[[], Coroutine[Any, Any, None]], float]]


class Agent:
    """Follows the session of one worker, from its registration until it has left.

    Loops run in ``tasks``; if one of them fails, that group ends the worker.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        session: ZkSession,
        attempts: HeldAttempts,
        tasks: asyncio.TaskGroup,
        claims: HeldClaims,
        presence: Presence,
        runner: Runner,
    ) -> None:
        self._settings, self._session = settings, session
        self._attempts, self._tasks, self._claims = attempts, tasks, claims
        self._presence, self._runner = presence, runner
        self._claiming: asyncio.Task[None] | None = None
        self._claims_no_more = False

    async def run(
        self, member: Membership, claimer: Claimer, loops: Loops, lifetime: Lifetime
    ) -> None:
        """Work until the worker is to stop, then leave in order."""
        lasting = [self._tasks.create_task(loop()) for loop in loops.always]
        at_once = lifetime.at_once
        try:
            async with member:
                lifetime.ready.set()
                log.info("worker ready", worker=member.member_id, **self._presence.data)
                lasting += [  # also while the worker drains
                    self._tasks.create_task(self._follow_sessions(claimer)),
                    self._tasks.create_task(self._end_unclaimed()),
                ]
                until_stop = [
                    self._tasks.create_task(member.wait()),
                    self._tasks.create_task(self._presence.publish_load(member)),
                    self._tasks.create_task(self._presence.publish_news(member)),
                    *(self._tasks.create_task(loop()) for loop in loops.until_stop),
                ]
                await lifetime.stop.wait()
                log.info("worker stopping", running=self._attempts.occupied)
                for task in until_stop:
                    task.cancel()
                await asyncio.wait(until_stop)
                # No claims any longer, in this session nor in a later one.
                self._claims_no_more = True
                await self._end_claiming()
                self._runner.start_no_more()
                await self._drain(at_once)
                for farewell, limit_s in loops.farewells:
                    await _first(farewell(), at_once.wait(), timeout_s=limit_s)
        finally:
            for task in lasting:
                task.cancel()

    async def _follow_sessions(self, claimer: Claimer) -> None:
        """When the session is lost, make sure that all it claimed is dead. Claim, until stopped."""
        while True:
            await self._session.proven()
            generation = self._session.generation
            self._claiming = None
            if not self._claims_no_more:
                self._claiming = asyncio.create_task(claimer.run(), name="claims")
            try:
                await self._lost_or_failed(generation, self._claiming)
            finally:
                await self._end_claiming()
            log.warning("session lost, ending all tasks", running=self._attempts.occupied)
            await self._runner.lose_session(SESSION_LOST)

    async def _lost_or_failed(self, generation: int, claiming: "asyncio.Task[None] | None") -> None:
        """Return when the session is over. Raises what ``claiming`` raised."""
        while self._session.generation == generation:
            lost = asyncio.create_task(self._session.lost())
            awaited = [lost] if claiming is None else [lost, claiming]
            try:
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if claiming is not None and claiming.done():
                    if not claiming.cancelled():  # else the worker stops
                        claiming.result()
                    await lost
                if lost.done():
                    return
            finally:
                lost.cancel()

    async def _end_claiming(self) -> None:
        if self._claiming is not None:
            self._claiming.cancel()
            await asyncio.wait([self._claiming])

    async def _end_unclaimed(self) -> None:
        """End the attempts whose claims were deleted: other workers may start them."""
        while True:
            await self._attempts.until_any()
            await asyncio.sleep(CLAIMS_CHECK_S)
            lost = await self._claims.lost()
            for attempt in self._attempts.live:
                if attempt.claim in lost:
                    log.error("claim deleted by another process", task_instance=attempt.id)
                    self._runner.interrupt(attempt, CLAIM_GONE)

    # -- end --------------------------------------------------------------------------------

    async def _drain(self, at_once: asyncio.Event) -> None:
        """Requeue what has not begun, let the rest finish, end what is left after drain_s."""
        unbegun = [attempt for attempt in self._attempts.live if not attempt.granted]
        for attempt in unbegun:
            self._attempts.forget(attempt)
        await self._claims.requeue_now(unbegun)
        drain_s = self._settings.drain_s
        await _first(self._attempts.idle(), at_once.wait(), timeout_s=drain_s)
        if self._attempts.occupied:
            log.warning("ending tasks: the worker stops", running=self._attempts.occupied)
            grace_s = 0.0 if at_once.is_set() else self._settings.kill_grace_s
            ending = asyncio.create_task(self._runner.interrupt_all(STOPPED, grace_s))
            await _first(asyncio.wait([ending]), at_once.wait(), timeout_s=None)
            if not ending.done():
                await self._runner.interrupt_all(STOPPED, 0.0)
            await ending


async def _first(*wanted: Coroutine[Any, Any, Any], timeout_s: float | None) -> None:
    """Return when one of ``wanted`` returns, or after ``timeout_s``; cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in wanted]
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
