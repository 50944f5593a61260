"""Own a fair share of partitions: a group assigns them, owner nodes prove who has them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from shoal.coordination.assignors import Partition
from shoal.coordination.cluster.ownership import Ownership
from shoal.coordination.group import Group, GroupListener, GroupSettings
from shoal.coordination.session.session import ZkSession


class FairShare(GroupListener):
    """Take part in the group for the life of the block, and own what it assigns to us.

    The callbacks are those of ``Ownership``, with the same promises: a partition has one owner at
    a time, each ownership has a higher epoch, and what is to move is released before another
    member acquires it. ``owner_path`` says where the owner node of a partition is.
    """

    def __init__(
        self,
        session: ZkSession,
        group: str,
        member_id: str,
        topics: Mapping[str, int],
        owner_path: Callable[[Partition], str],
        *,
        on_acquired: Callable[[Partition, int], Awaitable[None]],
        on_released: Callable[[Partition], Awaitable[None]],
        on_lost: Callable[[frozenset[Partition]], Awaitable[None]],
        settings: GroupSettings | None = None,
    ) -> None:
        # Ownership counts its partitions; so do we, for it.
        every = [
            Partition(topic, index) for topic, n in sorted(topics.items()) for index in range(n)
        ]
        number_of = {partition: number for number, partition in enumerate(every)}
        self._number_of = number_of
        self._wanted: frozenset[Partition] = frozenset()
        self.group = Group(
            session, group, topics=topics, listener=self, settings=settings, client_id=member_id
        )
        self._ownership = Ownership(
            session,
            member_id,
            {},
            on_acquired=lambda number, epoch: on_acquired(every[number], epoch),
            on_released=lambda number: on_released(every[number]),
            on_lost=lambda numbers: on_lost(frozenset(every[number] for number in numbers)),
            owner_path=lambda number: owner_path(every[number]),
        )
        self._blocks = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Raises what ``Group`` raises at entering."""
        async with AsyncExitStack() as blocks:
            await blocks.enter_async_context(self._ownership)
            await blocks.enter_async_context(self.group)
            self._blocks = blocks.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release everything, then leave the group."""
        await self._blocks.__aexit__(kind, error, traceback)

    async def on_assigned(self, partitions: frozenset[Partition]) -> None:
        self._want(self._wanted | partitions)

    async def on_revoked(self, partitions: frozenset[Partition]) -> None:
        self._want(self._wanted - partitions)
        await self._ownership.released(self._numbers(partitions))

    async def on_lost(self, partitions: frozenset[Partition]) -> None:
        # If only the group has given us up, and the session is alive, we still own them: they
        # are released in order, and the next owner waits for that.
        self._want(self._wanted - partitions)

    def _want(self, partitions: frozenset[Partition]) -> None:
        self._wanted = partitions
        self._ownership.set_wanted(self._numbers(partitions))

    def _numbers(self, partitions: Iterable[Partition]) -> list[int]:
        return [self._number_of[partition] for partition in partitions]
