"""Assignors that leave a partition where it is, unless evenness demands that it moves."""

from collections.abc import Mapping, Sequence

from shoal.coordination.assignors.claims import Claims, settle
from shoal.coordination.assignors.equal_subscriptions import deal
from shoal.coordination.assignors.member import Assignment, GroupMember, by_id, subscribers
from shoal.coordination.assignors.protocol import cooperative
from shoal.coordination.assignors.unequal_subscriptions import Balancing


def sticky(partition_counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assignment:
    """Share partitions evenly, and move as few as possible.

    With equal subscriptions the numbers of partitions differ by one at most, and no assignment
    as even as this moves fewer. With unequal ones no partition could move to a subscriber that
    has at least two fewer than its owner; and between two members partitions of one topic move
    in one direction only. An old owner may lose a partition to a new one in the same round, so
    this is for groups that give up everything before they join (the eager protocol).

    Which of several members with too many partitions keeps one more is left open by Kafka; here
    it is the one whose id sorts last.
    """
    return _assign(partition_counts, members)[0]


@cooperative
def cooperative_sticky(
    partition_counts: Mapping[str, int], members: Sequence[GroupMember]
) -> Assignment:
    """As ``sticky``, for members that go on working while the group rebalances.

    A partition that must leave a member is not assigned: first its owner learns that it
    is no longer assigned, gives it up and joins again. In that round it has no owner, and its new
    owner gets it. So two members never hold one partition, and what stays never pauses. A
    disputed partition (see ``Claims``) is held back too, until all that claim it have given it up;
    Kafka does so only when subscriptions are equal.
    """
    assigned, claims = _assign(partition_counts, members)
    return {
        member_id: [
            partition for partition in partitions if claims.is_free_for(partition, member_id)
        ]
        for member_id, partitions in assigned.items()
    }


def _assign(
    partition_counts: Mapping[str, int], members: Sequence[GroupMember]
) -> tuple[Assignment, Claims]:
    ordered = by_id(members)
    wanting = {
        topic: [member.id for member in wanting]
        for topic, wanting in subscribers(partition_counts, list(ordered.values())).items()
    }
    wanted_counts = {topic: partition_counts[topic] for topic in wanting}
    claims = settle(partition_counts, ordered.values())
    if all(len(ids) == len(ordered) for ids in wanting.values()):
        return deal(wanted_counts, list(ordered), claims.owner), claims
    return Balancing(wanted_counts, wanting, list(ordered), claims).run(), claims
