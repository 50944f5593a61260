"""Partitions of a group as numbers, and sets of them as runs: how a large group is stored."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence

from shoal.coordination.assignors import Partition

MOST_NAMED = 1_000_000  # partitions in all runs of a group together


class PartitionNumbers:
    """Number the partitions of ``counts``: topics in their order, each one's after the last.

    A set of partitions is stored as ``[gap, length, gap, length, …]``: so many numbers lie between
    the end of the run before and this one. Gaps are small and alike, so they compress well.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts
        self.topics = list(counts)
        self._starts: list[int] = []
        total = 0
        for count in counts.values():
            self._starts.append(total)
            total += count
        self._total, self._named = total, 0
        self._start_of = dict(zip(self.topics, self._starts, strict=True))

    def runs(self, partitions: Collection[Partition]) -> list[int]:
        """Return the runs of ``partitions``, which may be in any order."""
        runs: list[int] = []
        end = 0  # of the run before
        for number in sorted({self._start_of[each.topic] + each.index for each in partitions}):
            if runs and number == end:
                runs[-1] += 1
            else:
                runs += (number - end, 1)
            end = number + 1
        return runs

    def partitions(self, runs: Sequence[int]) -> tuple[Partition, ...]:
        """Return the partitions of ``runs``, in their order. Raises ValueError.

        ``runs`` are numbers that are not negative.
        """
        found: list[Partition] = []
        end = 0
        for gap, length in zip(runs[::2], runs[1::2], strict=True):
            start, end = end + gap, end + gap + length
            self._named += length
            if end > self._total or self._named > MOST_NAMED:
                raise ValueError("it names partitions that no topic has, or too many")
            while start < end:
                place = bisect_right(self._starts, start) - 1
                topic, first = self.topics[place], self._starts[place]
                last = min(end, first + self._counts[topic])
                found += [Partition(topic, n) for n in range(start - first, last - first)]
                start = last
        return tuple(found)


class TopicLists:
    """Number the different maps of topics to counts that members ask for."""

    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = topics
        self._place_of = {topic: place for place, topic in enumerate(topics)}
        self._number_of: dict[tuple[tuple[str, int], ...], int] = {}

    @property
    def lists(self) -> list[list[int]]:
        """Return each map as ``[place of a topic, count, place, count, …]``."""
        return [
            [number for topic, count in key for number in (self._place_of[topic], count)]
            for key in self._number_of
        ]

    def number(self, counts: Mapping[str, int]) -> int:
        return self._number_of.setdefault(tuple(counts.items()), len(self._number_of))
