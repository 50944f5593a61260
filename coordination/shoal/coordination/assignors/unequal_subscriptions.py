"""The sticky assignment when members want different topics: place, then even out step by step."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappush, heapreplace

from shoal.coordination.assignors.claims import Claims
from shoal.coordination.assignors.member import Assignment, Partition


class Balancing:
    """One run of the algorithm.

    ``wanting`` has the subscribers of each topic of ``partition_counts``. Every step of the
    evening-out moves one partition from a member to one with at least two fewer, so it ends.
    No step looks at all members or at all that a member has: with a thousand members and ten
    thousand partitions that would take seconds.
    """

    def __init__(
        self,
        partition_counts: Mapping[str, int],
        wanting: Mapping[str, Sequence[str]],
        member_ids: Sequence[str],
        claims: Claims,
    ) -> None:
        self._wanting = {topic: frozenset(ids) for topic, ids in wanting.items()}
        self._topics: dict[str, list[str]] = {member_id: [] for member_id in member_ids}
        for topic, ids in wanting.items():
            for member_id in ids:
                self._topics[member_id].append(topic)
        # Of each topic (load, subscriber) for each subscriber, with a load that it has or had. One
        # that is lower than its present load is corrected when it comes to the top.
        self._loads = {topic: sorted((0, each) for each in ids) for topic, ids in wanting.items()}
        self._claims = claims
        # The values are ordered sets.
        self._assigned: dict[str, dict[Partition, None]] = {each: {} for each in member_ids}
        self._owner: dict[Partition, str] = {}
        # Where each partition was before anything was moved to even things out.
        self._origin: dict[Partition, str] = {}
        # What is not there any longer, by its present owner, its topic and its origin.
        self._moved: dict[tuple[str, str, str], dict[Partition, None]] = {}
        # Those with the least choice of members come first.
        self._partitions = [
            Partition(topic, index)
            for topic in sorted(partition_counts, key=lambda topic: (len(wanting[topic]), topic))
            for index in range(partition_counts[topic])
        ]

    def run(self) -> Assignment:
        unsubscribed = self._keep()
        placed = self._place()
        self._origin = dict(self._owner)
        if not unsubscribed:
            # Perhaps it suffices to move what had no owner.
            self._even_out(placed)
        self._even_out(self._partitions)
        return {member_id: list(each) for member_id, each in self._assigned.items()}

    def _keep(self) -> bool:
        """Leave what is owned with its owner. Returns whether a member gave up a topic."""
        unsubscribed = False
        for partition in sorted(self._claims.owner):
            member_id = self._claims.owner[partition]
            if member_id in self._wanting.get(partition.topic, ()):
                self._give(partition, member_id)
            else:
                unsubscribed = True
        return unsubscribed

    def _place(self) -> list[Partition]:
        """Give each partition without an owner to the subscriber that has fewest."""
        unowned = [partition for partition in self._partitions if partition not in self._owner]
        for partition in unowned:
            self._give(partition, self._least_loaded(partition.topic))
        return unowned

    def _even_out(self, partitions: Iterable[Partition]) -> None:
        movable = [each for each in partitions if len(self._wanting[each.topic]) > 1]
        moved = True
        while moved:
            moved = False
            for partition in movable:
                target = self._better_owner(partition)
                if target is not None:
                    self._move(partition, target)
                    moved = True

    def _better_owner(self, partition: Partition) -> str | None:
        """Return a member that should have it, with two fewer at least: best its last owner."""
        most = len(self._assigned[self._owner[partition]]) - 2
        least = self._least_loaded(partition.topic)
        for candidate in (self._claims.runner_up.get(partition, least), least):
            wants_it = candidate in self._wanting[partition.topic]
            if wants_it and len(self._assigned[candidate]) <= most:
                return candidate
        return None

    def _move(self, partition: Partition, target: str) -> None:
        """Move ``partition`` to ``target``, or have the same effect on the loads with fewer moves.

        If another partition of the topic went from ``target`` to where this one came from, both
        go home instead.
        """
        origin = self._origin[partition]
        opposite = next(iter(self._moved.get((origin, partition.topic, target), ())), None)
        if opposite is None:
            self._take(partition)
            self._give(partition, target)
            return
        for returning in (partition, opposite):
            self._take(returning)
            self._give(returning, self._origin[returning])

    def _least_loaded(self, topic: str) -> str:
        """Return the subscriber with the fewest partitions; of several the first by id."""
        loads = self._loads[topic]
        while True:
            load, member_id = loads[0]
            present = len(self._assigned[member_id])
            if load == present:
                return member_id
            heapreplace(loads, (present, member_id))

    def _give(self, partition: Partition, member_id: str) -> None:
        self._assigned[member_id][partition] = None
        self._owner[partition] = member_id
        origin = self._origin.get(partition, member_id)
        if origin != member_id:
            self._moved.setdefault((member_id, partition.topic, origin), {})[partition] = None

    def _take(self, partition: Partition) -> None:
        owner = self._owner[partition]
        del self._assigned[owner][partition]
        origin = self._origin[partition]
        if origin != owner:
            del self._moved[owner, partition.topic, origin][partition]
        for topic in self._topics[owner]:
            heappush(self._loads[topic], (len(self._assigned[owner]), owner))
