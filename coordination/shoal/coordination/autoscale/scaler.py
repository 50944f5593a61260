"""The loop around the decision; it runs in the elected leader and nowhere else."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, Self

import structlog

from shoal.coordination import background
from shoal.coordination.autoscale.decision import (
    Observation,
    ScalingSettings,
    ScalingState,
    decide,
)
from shoal.coordination.recipes.election import Election, ElectionListener
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()

INTERVAL_S = 30.0  # between decisions: a worker takes seconds to start, a backlog minutes


class ScaleTarget(Protocol):
    """What has workers. Only the leader calls it, one call at a time."""

    async def count(self) -> int:
        """Return how many workers it is meant to have now."""

    async def scale_to(self, count: int) -> None:
        """Have ``count`` workers: start some, or let some finish their work and end.

        Called at every interval, also with the same number: what has died is replaced then.
        Does not wait for those that finish their work.
        """

    async def release(self) -> None:
        """We no longer lead. What another leader cannot take over is to end."""


class Autoscaler(ElectionListener):
    """Stand for election for the life of the block; as the leader keep ``target`` at its size.

    ``observe`` returns the load. When it or the target fails, that is logged, the last decision
    stands, and the next interval tries again.
    """

    def __init__(
        self,
        session: ZkSession,
        name: str,
        candidate_id: str,
        observe: Callable[[], Awaitable[Observation]],
        target: ScaleTarget,
        settings: ScalingSettings,
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._observe, self._target, self._settings = observe, target, settings
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None
        self.election = Election(session, name, candidate_id, self)

    async def __aenter__(self) -> Self:
        await self.election.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.election.__aexit__()

    async def on_elected(self, epoch: int) -> None:
        state = ScalingState(await self._target.count())
        log.info("autoscaling", election=self.election.name, epoch=epoch, count=state.count)
        self._task = background.start(self._run(state), f"autoscaler {self.election.name}")

    async def on_deposed(self) -> None:
        await self._end()

    async def on_lost(self) -> None:
        await self._end()

    async def _end(self) -> None:
        await background.stop(self._task)
        await self._target.release()

    async def _run(self, state: ScalingState) -> None:
        while True:
            try:
                observation = await self._observe()
                state = self._decide(state, observation)
            except Exception:
                log.exception("load not seen", election=self.election.name)
            try:
                await self._target.scale_to(state.count)
            except Exception:
                log.exception("not scaled", election=self.election.name)
            await asyncio.sleep(self._interval_s)

    def _decide(self, state: ScalingState, observation: Observation) -> ScalingState:
        decided, count = decide(state, observation, self._settings, time.monotonic())
        if count != state.count:
            log.info(
                "scaling",
                election=self.election.name,
                before=state.count,
                after=count,
                backlog=observation.backlog,
                running=observation.running,
            )
        return decided
