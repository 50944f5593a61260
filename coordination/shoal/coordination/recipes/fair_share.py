"""Own a fair share of partitions: a group assigns them, owner nodes prove who has them."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Self

import structlog

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import CoordinationError
from shoal.coordination.group import Group, GroupListener, GroupSettings
from shoal.coordination.group.group import checked_topics
from shoal.coordination.recipes.ownership import OwnerNodes, Ownership, OwnershipListener
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()


class FairShare(GroupListener):
    """Take part in the group for the life of the block, and own what it assigns to us.

    The assignment is the *desired* one; the ephemeral owner nodes decide. ``listener`` is called as
    ``Ownership`` calls it, with the same promises: a partition has one owner at a time, each
    ownership has a higher epoch, and what is to move is released before another member acquires it.
    ``takeover_delay_s``: see ``Ownership``. The group's members go by the owner ids of ``nodes``.

    A member that cannot do its work for a while can ``leave`` and ``join`` within the block.
    Raises at construction what ``Group`` raises, and ``nodes.path`` for any of the partitions.
    """

    def __init__(
        self,
        session: ZkSession,
        group: str,
        topics: Mapping[str, int],
        nodes: OwnerNodes[Partition],
        listener: OwnershipListener[Partition],
        *,
        settings: GroupSettings | None = None,
        takeover_delay_s: float = 0.0,
    ) -> None:
        # Ownership counts its partitions; so do we, for it.
        counts = sorted(checked_topics(topics).items())
        every = [Partition(topic, index) for topic, n in counts for index in range(n)]
        for partition in every:
            nodes.path(partition)
        self._every = every
        self._number_of = {partition: number for number, partition in enumerate(every)}
        self._desired: frozenset[Partition] = frozenset()
        self._make_group = partial(
            Group,
            session,
            group,
            topics=topics,
            listener=self,
            settings=replace(settings or GroupSettings(), client_id=nodes.owner_id),
        )
        self.group = self._make_group()  # our part in it; after ``leave``, the one that has ended
        self._has_joined = False
        self._ownership = Ownership(
            session,
            OwnerNodes(lambda number: nodes.path(every[number]), nodes.owner_id, nodes.data),
            OwnershipListener(
                lambda number, epoch: listener.on_acquired(every[number], epoch),
                lambda number: listener.on_released(every[number]),
                lambda numbers: listener.on_lost(frozenset(every[number] for number in numbers)),
            ),
            takeover_delay_s=takeover_delay_s,
            on_failure=lambda error: self.fail(error),
        )

    async def __aenter__(self) -> Self:
        """Raises what ``Group`` raises at entering."""
        await self._ownership.__aenter__()
        try:
            await self.join()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Release everything, then leave the group.

        If it is cancelled, what is not released by then is lost, as with ``Ownership``.
        """
        try:
            await self.leave()
        except asyncio.CancelledError:
            # The group has taken the cancellation: the ownership would release in order.
            await self._ownership.abandon()
            raise
        await self._ownership.__aexit__()

    @property
    def has_joined(self) -> bool:
        """Whether we take part: false between ``leave`` and ``join``."""
        return self._has_joined

    async def join(self) -> None:
        """Take part again after ``leave``. Raises what ``Group`` raises at entering.

        Only one ``join`` or ``leave`` at a time, within the block.
        """
        if self._has_joined:
            return
        self._ownership.raise_failure()
        self.group = self._make_group()  # it is told if our ownership fails meanwhile
        await self.group.__aenter__()
        self._has_joined = True

    async def leave(self) -> None:
        """Release everything and leave the group; the partitions go to the others."""
        if self._has_joined:
            self._has_joined = False
            await self.group.__aexit__()

    async def wait(self) -> None:
        """Return when the group has been left. Raises what has ended our part before that."""
        await self.group.wait()

    def fail(self, error: CoordinationError) -> None:
        """Take part no longer: ``wait`` of this and of the group raise ``error``."""
        self.group.fail(error)

    def owned(self) -> Mapping[Partition, int]:
        """Return the epoch of each partition that we own and can prove to own at this moment.

        Partitions whose ``on_acquired`` is still running are among them.
        """
        return self._named(self._ownership.owned())

    async def confirmed(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """Return the epochs of those of ``partitions`` whose owner nodes, read now, are ours.

        Raises ConnectionLoss, SessionLost.
        """
        return self._named(await self._ownership.confirmed(self._numbers(partitions)))

    async def give_up(
        self, epochs: Mapping[Partition, int], pause_s: float
    ) -> frozenset[Partition]:
        """Give up partitions whose nodes stand, to acquire them again.

        See ``Ownership.give_up``.
        """
        numbered = {self._number_of[partition]: epoch for partition, epoch in epochs.items()}
        given = await self._ownership.give_up(numbered, pause_s)
        return frozenset(self._every[number] for number in given)

    # ------------------------------------------------------------------ what the group says

    async def on_assigned(self, partitions: frozenset[Partition]) -> None:
        """Desire more partitions."""
        # A leader of an earlier version gives a partition to any member that wants its topic.
        if unknown := sorted(partitions - self._number_of.keys()):
            log.warning(
                "assigned partitions are unknown here: they have no owner until all processes "
                "use one number of partitions, or a newer version leads the group",
                group=self.group.name,
                first=unknown[0],
                count=len(unknown),
            )
        self._desire(self._desired | (partitions & self._number_of.keys()))

    async def on_revoked(self, partitions: frozenset[Partition]) -> None:
        """Release partitions; return when another member can have them."""
        self._desire(self._desired - partitions)
        await self._ownership.released(self._numbers(partitions & self._number_of.keys()))

    async def on_lost(self, partitions: frozenset[Partition]) -> None:
        """The group goes on without us, or the session does not go on.

        Our nodes still count: as long as they stand no other member is the owner, so we release
        in order. If the session is over, the ownership finds that out itself.
        """
        self._desire(self._desired - partitions)

    def _desire(self, partitions: frozenset[Partition]) -> None:
        self._desired = partitions
        log.info("partitions desired", group=self.group.name, count=len(partitions))
        self._ownership.set_wanted(self._numbers(partitions))

    def _numbers(self, partitions: Iterable[Partition]) -> list[int]:
        return [self._number_of[partition] for partition in partitions]

    def _named(self, epochs: Mapping[int, int]) -> Mapping[Partition, int]:
        return {self._every[number]: epoch for number, epoch in epochs.items()}
