"""The sticky assignment when all members want the same topics: a quota each, kept or filled up."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from shoal.coordination.assignors.member import Assignment, Partition


def deal(
    partition_counts: Mapping[str, int], member_ids: Sequence[str], owner: Mapping[Partition, str]
) -> Assignment:
    """Return the assignment that is even and keeps the most of what ``owner`` says.

    Every member gets ``quota`` partitions, and ``extras`` members one more.
    """
    partitions = [
        Partition(topic, index)
        for topic in sorted(partition_counts)
        for index in range(partition_counts[topic])
    ]
    assigned: Assignment = {member_id: [] for member_id in member_ids}
    if not member_ids:
        return assigned
    quota, extras = divmod(len(partitions), len(member_ids))
    full = _keep(assigned, partitions, owner, quota, extras)
    kept = {partition for held in assigned.values() for partition in held}
    below = deque(member_id for member_id in sorted(member_ids) if len(assigned[member_id]) < quota)
    # Members that have their quota and could have one more. The latest to reach it goes last.
    at_quota = deque(
        member_id
        for member_id in sorted(member_ids)
        if len(assigned[member_id]) == quota and full < extras
    )
    for partition in partitions:
        if partition in kept:
            continue
        member_id = below.popleft() if below else at_quota.popleft()
        assigned[member_id].append(partition)
        if len(assigned[member_id]) < quota:
            below.append(member_id)
        elif len(assigned[member_id]) == quota:
            at_quota.append(member_id)
    return assigned


def _keep(
    assigned: Assignment,
    partitions: Sequence[Partition],
    owner: Mapping[Partition, str],
    quota: int,
    extras: int,
) -> int:
    """Leave every member what it owns, up to its quota. Returns how many got one more.

    Partitions with low indices are kept first, so that every topic loses some, rather than one
    of them all. Later ids come first, as in the cases that Kafka tests.
    """
    owned: dict[str, list[Partition]] = defaultdict(list)
    for partition in sorted(partitions, key=lambda partition: (partition.index, partition.topic)):
        if partition in owner:
            owned[owner[partition]].append(partition)
    full = 0
    for member_id in sorted(owned, reverse=True):
        has_extra = len(owned[member_id]) > quota and full < extras
        full += has_extra
        assigned[member_id] += owned[member_id][: quota + has_extra]
    return full
