"""Fill a queue, have claimers take from it, and reckon what that took."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from bench.queue.crowd import Crowd
from shoal.coordination import QueueEntry, TaskQueue

PUT = 5000  # entries handed over to the queue at once
ROUND = 512  # entries claimed, then as many new ones are put: the queue stays as long


@dataclass(frozen=True)
class Figures:
    """What claiming costs with so many entries waiting. Times are in milliseconds."""

    waiting: int
    claimers: int
    size: int  # entries asked for by one claim
    claims: int
    median_ms: float
    p99_ms: float
    claims_per_s: float  # of all claimers together
    entries_per_s: float
    conflicts_per_claim: float  # transactions that came too late


async def fill(
    queue: TaskQueue, entries: Iterable[QueueEntry], progress: Callable[[int], None]
) -> float:
    """Put ``entries``; return how many were put per second. ``progress`` hears of each batch."""
    waiting = iter(entries)
    count, spent_s = 0, 0.0
    while batch := list(islice(waiting, PUT)):
        began = time.monotonic()
        await queue.put(batch)
        spent_s += time.monotonic() - began
        count += len(batch)
        progress(len(batch))
    return count / spent_s


@dataclass
class Trial:
    """Claims of ``size`` entries by one crowd, in rounds.

    ``arriving`` gives the entries that are put after each round, in place of those claimed. The
    first claim of a round finds that the queue has changed; it is part of the figures.
    """

    queue: TaskQueue
    waiting: int
    arriving: Iterator[QueueEntry]
    crowd: Crowd
    size: int
    _claimed: set[int] = field(default_factory=set)
    _latencies_ns: list[int] = field(default_factory=list)
    _lost_races: int = 0
    _spent_ns: int = 0

    async def round(self) -> None:
        """Have every claimer claim its part of a round."""
        entries = min(ROUND, self.waiting // 2)
        each = max(1, entries // (self.crowd.claimers * self.size))
        answers = await self.crowd.claim(each, self.size)
        tasks = [task for answer in answers for task in answer["tasks"]]
        if len(set(tasks)) != len(tasks) or self._claimed & set(tasks):
            raise SystemExit("an entry was claimed twice: this is a bug in the queue")
        self._claimed.update(tasks)
        for answer in answers:
            self._latencies_ns += answer["latencies_ns"]
            self._lost_races += answer["lost_races"]
        began = min(answer["began_ns"] for answer in answers)
        self._spent_ns += max(answer["ended_ns"] for answer in answers) - began
        await self.queue.put(islice(self.arriving, len(tasks)))

    def figures(self) -> Figures:
        """Return what all rounds so far have shown."""
        claims, spent_s = len(self._latencies_ns), self._spent_ns / 1e9
        return Figures(
            waiting=self.waiting,
            claimers=self.crowd.claimers,
            size=self.size,
            claims=claims,
            median_ms=statistics.median(self._latencies_ns) / 1e6,
            p99_ms=statistics.quantiles(self._latencies_ns, n=100)[98] / 1e6,
            claims_per_s=claims / spent_s,
            entries_per_s=len(self._claimed) / spent_s,
            conflicts_per_claim=self._lost_races / claims,
        )
