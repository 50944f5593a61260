"""The callbacks of a group's user: one call at a time, each change once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from shoal.coordination import background
from shoal.coordination.assignors import Partition

log = structlog.get_logger()

Callback = Callable[[frozenset[Partition]], Awaitable[None]]


class GroupListener:
    """Is called when a member's partitions change; override what you need.

    Calls come one after the other, never with an empty set, and what is taken away comes before
    what is given. Each partition that was assigned is revoked or lost once. A call that fails is
    logged and counts as done: a partition whose ``on_assigned`` failed is still ours, one whose
    ``on_revoked`` failed is given up.

    A call is cancelled when the session can no longer be proven, when the group goes on without
    this member, or when it takes longer than 0.9 of the rebalance timeout; ``on_lost`` follows
    with all that was ours, what the cancelled call was about included. Then the member joins anew.
    """

    async def on_assigned(self, partitions: frozenset[Partition]) -> None:
        """They are ours from now on, besides those that we have already."""

    async def on_revoked(self, partitions: frozenset[Partition]) -> None:
        """Another member gets them once this has returned: finish the work, then return."""

    async def on_lost(self, partitions: frozenset[Partition]) -> None:
        """Another member may have them already: stop without writing."""


class TooSlow(Exception):
    """A callback took longer than it may."""


class HeldPartitions:
    """What a listener holds: what was assigned to it and has not been revoked or lost."""

    def __init__(self, listener: GroupListener, group: str, limit_s: float) -> None:
        self._listener, self._group, self._limit_s = listener, group, limit_s
        self.partitions: frozenset[Partition] = frozenset()

    async def assign(self, partitions: Iterable[Partition]) -> None:
        """Raises TooSlow; then, and when it is cancelled, they are held."""
        given = frozenset(partitions)
        self.partitions |= given
        await self._call("on_assigned", self._listener.on_assigned, given)

    async def revoke(self, partitions: Iterable[Partition]) -> None:
        """Raises TooSlow; then, and when it is cancelled, they are still held."""
        taken = frozenset(partitions)
        await self._call("on_revoked", self._listener.on_revoked, taken)
        self.partitions -= taken

    async def lose(self) -> None:
        """Everything is lost."""
        lost, self.partitions = self.partitions, frozenset()
        try:
            await self._call("on_lost", self._listener.on_lost, lost)
        except TooSlow as error:
            log.error("listener does not stop", group=self._group, error=str(error))

    async def _call(self, name: str, callback: Callback, partitions: frozenset[Partition]) -> None:
        if not partitions:
            return
        try:
            async with asyncio.timeout(self._limit_s) as limit:
                await callback(partitions)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and background.is_cancelled():
                raise
            # A callback that awaits a cancelled task fails with that task's cancellation.
            if limit.expired() and isinstance(error, TimeoutError):
                raise TooSlow(f"{name} took longer than {self._limit_s:g} s") from error
            log.exception("listener of a group failed", callback=name, group=self._group)
