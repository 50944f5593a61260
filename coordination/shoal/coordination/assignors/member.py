"""What an assignor reads: partitions, and the members as they described themselves on joining."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shoal.coordination.errors import DuplicateMember

NO_GENERATION = -1  # of a member that has never been part of the group


class Partition(NamedTuple):
    """One slice of a topic. Sorts by topic, then index."""

    topic: str
    # The field hides tuple.index, which a pair does not need.
    index: int  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member and its claims.

    ``owned`` is what it had when it joined, and ``generation`` the one in which it got that.
    ``instance_id`` names a static member across its restarts, while ``id`` changes with each.
    """

    id: str
    topics: Sequence[str]
    owned: Sequence[Partition] = ()
    generation: int = NO_GENERATION
    instance_id: str | None = None


Assignment = dict[str, list[Partition]]
Assignor = Callable[[Mapping[str, int], Sequence[GroupMember]], Assignment]


def rank(member: GroupMember) -> tuple[bool, str]:
    """Return the sort key of Kafka's stateless assignors: static members first, by instance id.

    So a static member that restarts under a new ``id`` gets the same partitions again.
    """
    return member.instance_id is None, member.instance_id or member.id


def by_id(members: Sequence[GroupMember]) -> dict[str, GroupMember]:
    """Return the members in the order of their ids. Raises DuplicateMember."""
    found: dict[str, GroupMember] = {}
    for member in sorted(members, key=lambda member: member.id):
        if member.id in found:
            raise DuplicateMember(member.id)
        found[member.id] = member
    return found


def subscribers(
    partition_counts: Mapping[str, int], members: Sequence[GroupMember]
) -> dict[str, list[GroupMember]]:
    """Return the members that want each existing topic, in the order of ``members``; topics sorted.

    A topic that no member wants, or that has no partitions, is left out.
    """
    found: dict[str, list[GroupMember]] = {}
    for topic in sorted(partition_counts):
        wanting = [member for member in members if topic in member.topics]
        if wanting and partition_counts[topic] > 0:
            found[topic] = wanting
    return found
