"""Somebody deletes or overwrites what Shoal has written in ZooKeeper, or all of it is gone."""

import asyncio
from typing import ClassVar

from shoal.coordination import znodes
from shoal.coordination.cluster import layout
from tests.chaos.cluster.cluster import Cluster
from tests.chaos.faults.fault import Fault, Skipped, effects, moved
from tests.chaos.observer import View

_JUNK = (
    b"",
    b"\xff\x00 not json",
    b"[]",
    b'{"version": 99}',
    b"null",
    b'"' + b"x" * 100_000 + b'"',
)


class _Intrusion(Fault):
    """``paths`` are struck once; what follows is Shoal's own business."""

    hurts = frozenset({"masters", "znodes"})
    _struck = 0

    async def begin(self, cluster: Cluster) -> None:
        paths = await self.paths(cluster)
        if not paths:
            raise Skipped(f"there is nothing to strike for {self.name}")
        self.target = paths[0] if len(paths) == 1 else f"{len(paths)} znodes"
        self._struck = await self.strike(cluster, paths)

    async def paths(self, cluster: Cluster) -> list[str]:
        """Return the znodes to strike."""
        raise NotImplementedError

    async def strike(self, cluster: Cluster, paths: list[str]) -> int:
        """Delete them; return how many were there."""
        return await cluster.observer.delete(paths)

    def bit(self, after: View) -> tuple[bool, str]:
        return self._struck > 0, f"{self._struck} struck; {effects(self.before, after)}"


class DeleteOwners(_Intrusion):
    """Every owner node is deleted under its master, whose session lives on."""

    name = "delete-owners"
    costs_workers = False

    async def paths(self, cluster: Cluster) -> list[str]:
        return [layout.owner(number) for number in self.before.owners]

    def bit(self, after: View) -> tuple[bool, str]:
        count = moved(self.before, after)
        return count > 0, f"{self._struck} deleted; {effects(self.before, after)}"


class DeleteClaims(_Intrusion):
    """Every claim is deleted under its worker: no task may run twice because of it."""

    name = "delete-claims"

    async def paths(self, cluster: Cluster) -> list[str]:
        return await cluster.observer.below(
            [layout.claim_bucket(number) for number in range(layout.CLAIM_BUCKETS)]
        )


class DeleteMembers(_Intrusion):
    """The registrations of masters and workers are deleted, while they live."""

    name = "delete-members"

    async def paths(self, cluster: Cluster) -> list[str]:
        folders = [layout.MASTERS, layout.WORKERS, znodes.group_members(layout.MASTERS_GROUP)]
        return await cluster.observer.below(folders)


class WriteJunk(_Intrusion):
    """What stands in some znodes is replaced by what nobody can read."""

    name = "junk-znodes"

    async def paths(self, cluster: Cluster) -> list[str]:
        folders = [layout.MASTERS, layout.WORKERS, znodes.group_members(layout.MASTERS_GROUP)]
        nodes = await cluster.observer.below(folders)
        nodes += [layout.owner(number) for number in self.before.owners]
        nodes += [layout.notification(number) for number in self.before.owners]
        return [znodes.group(layout.MASTERS_GROUP), *self.dice.sample(nodes, min(len(nodes), 8))]

    async def strike(self, cluster: Cluster, paths: list[str]) -> int:
        junk = {path: self.dice.choice(_JUNK) for path in paths}
        return await cluster.observer.overwrite(junk)


class WipeZooKeeper(Fault):
    """All servers lose all their data, and come back empty."""

    name = "wipe-zookeeper"
    alone: ClassVar[bool] = True

    async def begin(self, cluster: Cluster) -> None:
        self.target = "all servers"
        self._roles = {role.name: len(role.exits) for role in cluster.roles}
        for member in cluster.ensemble.members:
            member.kill()
        await asyncio.to_thread(cluster.ensemble.wipe)

    async def heal(self, cluster: Cluster) -> None:
        await cluster.ensemble.start_all()
        await cluster.observer.writes_again()
        self._exits = [
            role.name for role in cluster.roles if len(role.exits) > self._roles[role.name]
        ]

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"restarted: {', '.join(self._exits)}" if self._exits else "nobody was restarted"
        return True, f"{said}; {effects(self.before, after)}"
