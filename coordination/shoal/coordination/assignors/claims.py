"""The real owners: settles contradictions between what members say they own."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shoal.coordination.assignors.member import GroupMember, Partition


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims to partitions that exist.

    ``owner`` has the partitions whose claim is settled: the highest generation wins. Of two
    claims in the same, highest generation neither can be believed: the partition is in
    ``disputed`` and has no owner. ``runner_up`` had a partition before its owner.
    """

    owner: Mapping[Partition, str]
    runner_up: Mapping[Partition, str]
    disputed: frozenset[Partition]

    def is_free_for(self, partition: Partition, member_id: str) -> bool:
        """Return whether ``member_id`` may have it at once, because no other can hold it."""
        if partition in self.disputed:
            return False
        return self.owner.get(partition, member_id) == member_id


def settle(partition_counts: Mapping[str, int], members: Iterable[GroupMember]) -> Claims:
    """Return the owners. Of equal runner-ups the order of ``members`` decides."""
    claimants: dict[Partition, list[GroupMember]] = defaultdict(list)
    for member in members:
        for partition in dict.fromkeys(member.owned):
            if 0 <= partition.index < partition_counts.get(partition.topic, 0):
                claimants[partition].append(member)
    owner: dict[Partition, str] = {}
    runner_up: dict[Partition, str] = {}
    disputed = set()
    for partition, claiming in claimants.items():
        newest, *older = sorted(claiming, key=lambda member: -member.generation)
        if older and older[0].generation == newest.generation:
            disputed.add(partition)
            continue
        owner[partition] = newest.id
        if older:
            runner_up[partition] = older[0].id
    return Claims(owner, runner_up, frozenset(disputed))
