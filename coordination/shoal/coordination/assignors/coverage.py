"""Members that disagree about a topic's number of partitions: each gets only what it knows of."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from shoal.coordination.assignors.member import Assignment, Assignor, GroupMember, Partition


def assign_covered(
    assign: Assignor,
    partition_counts: Mapping[str, int],
    members: Sequence[GroupMember],
    known: Mapping[str, Mapping[str, int]],
) -> Assignment:
    """Return what ``assign`` gives the members, each only partitions below its own count.

    ``partition_counts`` has the largest count of each topic, and ``known`` the counts of each
    member. Where they differ, the topic is split for the assignor: partitions 0 and 1 that all
    members know, and 2 to 7 that only some of them know, are two topics to it. Assignors stay
    functions of whole topics that way, and no partition goes to a member that cannot own it.
    """
    bands = _Bands(partition_counts, known)
    if not bands.is_needed:
        return assign(partition_counts, members)
    seen = [
        replace(
            member,
            topics=bands.wanted(known[member.id]),
            owned=tuple(map(bands.to_band, member.owned)),
        )
        for member in members
    ]
    assigned = assign(bands.counts, seen)
    return {
        member_id: [bands.from_band(each) for each in given]
        for member_id, given in assigned.items()
    }


class _Bands:
    """Topics cut wherever the partitions of some member end."""

    def __init__(
        self, partition_counts: Mapping[str, int], known: Mapping[str, Mapping[str, int]]
    ) -> None:
        ends: dict[str, set[int]] = {topic: {0} for topic in partition_counts}
        for counts in known.values():
            for topic, count in counts.items():
                ends[topic].add(count)
        self._cuts = {topic: sorted(found) for topic, found in ends.items()}
        self.is_needed = any(
            count < partition_counts[topic]
            for each in known.values()
            for topic, count in each.items()
        )
        self.counts: dict[str, int] = {}
        self._places: dict[str, tuple[str, int]] = {}  # band -> its topic and first index
        for topic, cuts in self._cuts.items():
            for start, end in pairwise(cuts):
                self.counts[self._name(topic, start)] = end - start
                self._places[self._name(topic, start)] = topic, start

    @staticmethod
    def _name(topic: str, start: int) -> str:
        return f"{topic}\0{start}" if start else topic

    def wanted(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """Return the bands that a member with these counts knows."""
        return tuple(
            self._name(topic, start)
            for topic, count in counts.items()
            for start, end in pairwise(self._cuts[topic])
            if end <= count
        )

    def to_band(self, partition: Partition) -> Partition:
        for start, end in pairwise(self._cuts.get(partition.topic, ())):
            if start <= partition.index < end:
                return Partition(self._name(partition.topic, start), partition.index - start)
        return partition  # of a topic that members no longer want

    def from_band(self, partition: Partition) -> Partition:
        topic, start = self._places.get(partition.topic, (partition.topic, 0))
        if 0 <= partition.index < self.counts.get(partition.topic, 0):
            return Partition(topic, start + partition.index)
        return partition  # an assignor's mistake, which its caller reports
