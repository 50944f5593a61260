"""Assignors that go by the members alone, not by what they own."""

from collections.abc import Mapping, Sequence
from itertools import cycle

from shoal.coordination.assignors.member import (
    Assignment,
    GroupMember,
    Partition,
    by_id,
    rank,
    subscribers,
)


def range_(partition_counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assignment:
    """Give each subscriber of a topic a contiguous run of its partitions.

    What does not divide evenly goes, one each, to the first members, in every topic anew: with
    many topics of few partitions the first members have much more to do. In return, topics of
    equal size are co-partitioned: partition i of each has the same owner.
    """
    assigned: Assignment = {member_id: [] for member_id in by_id(members)}
    for topic, wanting in _ranked(partition_counts, members).items():
        share, extra = divmod(partition_counts[topic], len(wanting))
        start = 0
        for position, member in enumerate(wanting):
            end = start + share + (position < extra)
            assigned[member.id] += (Partition(topic, index) for index in range(start, end))
            start = end
    return assigned


def round_robin(partition_counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assignment:
    """Deal all partitions out, topic by topic, to one member after the other.

    Members that do not want a topic are passed over, so with unequal subscriptions the result
    can be quite uneven.
    """
    assigned: Assignment = {member_id: [] for member_id in by_id(members)}
    wanted = _ranked(partition_counts, members)
    turns = cycle(sorted(members, key=rank))
    for topic in wanted:
        for index in range(partition_counts[topic]):
            member = next(member for member in turns if topic in member.topics)
            assigned[member.id].append(Partition(topic, index))
    return assigned


def modulo(partition_counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assignment:
    """Give partition i of a topic to its subscriber number i mod n.

    Who owns a partition follows from the members, without the whole assignment. When
    n changes nearly everything moves.
    """
    assigned: Assignment = {member_id: [] for member_id in by_id(members)}
    for topic, wanting in _ranked(partition_counts, members).items():
        for index in range(partition_counts[topic]):
            assigned[wanting[index % len(wanting)].id].append(Partition(topic, index))
    return assigned


def _ranked(
    partition_counts: Mapping[str, int], members: Sequence[GroupMember]
) -> dict[str, list[GroupMember]]:
    return subscribers(partition_counts, sorted(members, key=rank))
