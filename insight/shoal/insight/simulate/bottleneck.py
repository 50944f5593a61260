"""Where it gets narrow first: when, for what, why, and how many slots would be enough."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from shoal.core.timing.durations import format_duration
from shoal.insight.simulate.changes import with_slots
from shoal.insight.simulate.engine.cluster import SimulatedCluster
from shoal.insight.simulate.engine.pool import Congestion, Pool
from shoal.insight.simulate.engine.workflow import PreparedPlan
from shoal.insight.simulate.model import Model
from shoal.insight.simulate.simulation import Question, play

# Attempts that further simulations may have together: the search for a number of slots is left
# out where it would take many times as long as the simulation itself.
MOST_SEARCHED = 400_000
_MOST_NAMED, _LEAST_NAMED = 3, 0.005  # workflows, and the share of one
_PLENTY = 1_000_000

Kind = Literal["worker group", "concurrency group"]


@dataclass(frozen=True)
class Share:
    """What a workflow takes of a pool's slots in a congestion. ``share``: from 0 to 1."""

    workflow: str
    attempts: int
    share: float


@dataclass(frozen=True)
class Bottleneck:
    """The first time that a task waited longer than the limit for a slot.

    ``enough``: slots with which no task waits longer than that in the whole simulation, None:
    not searched; ``longest_s`` then. ``never_waits``: with which no task waits at all. Both were
    simulated, not estimated; None too if no number of slots helps.
    """

    kind: Kind
    name: str
    slots: int
    since: str
    until: str | None
    longest_s: float
    most_waiting: int
    shares: tuple[Share, ...]
    why: str
    enough: int | None
    longest_with_enough_s: float | None
    never_waits: int | None

    def advice(self, limit: str) -> str:
        """Return in words how many slots would be enough; ``limit``: the longest wait, in words."""
        if self.never_waits is None:
            return "No number of slots of it would help."
        none = f"With {self.never_waits:,} slots no task of it would wait at all."
        if self.enough is None or self.enough == self.never_waits:
            return none
        return f"{self.enough:,} slots would be enough for waits of at most {limit}. {none}"


def first_bottleneck(
    model: Model, question: Question, prepared: PreparedPlan, cluster: SimulatedCluster
) -> Bottleneck | None:
    """Return the first bottleneck of a simulation; None: no task waited longer than the limit."""
    found: list[tuple[datetime, int, Kind, Pool, Congestion]] = []
    kinds: tuple[tuple[Kind, Mapping[str, Pool]], ...] = (
        ("worker group", cluster.groups),
        ("concurrency group", cluster.concurrency),
    )
    for kind, pools in kinds:
        for pool in pools.values():
            found += [(one.since, len(found), kind, pool, one) for one in pool.congestions[:1]]
    if not found:
        return None
    _, _, kind, pool, congestion = min(found)
    search = _SlotSearch(model, question, prepared, kind, pool.name)
    never_waits = search.never_waits()
    enough, longest_s = search.enough(pool.slots, never_waits, cluster.attempts)
    shares = _shares(congestion)
    return Bottleneck(
        kind=kind,
        name=pool.name,
        slots=pool.slots,
        since=_text(congestion.since),
        until=_text(congestion.until) if congestion.until else None,
        longest_s=round(congestion.longest_s, 3),
        most_waiting=congestion.most_waiting,
        shares=shares,
        why=_why(kind, pool, congestion, shares),
        enough=enough,
        longest_with_enough_s=longest_s,
        never_waits=never_waits,
    )


class _SlotSearch:
    """Simulates with other numbers of slots of one pool."""

    def __init__(
        self, model: Model, question: Question, prepared: PreparedPlan, kind: Kind, name: str
    ) -> None:
        self._model, self._question, self._prepared = model, question, prepared
        self._kind, self._name = kind, name

    def _with(self, slots: int) -> Pool:
        """Simulate with so many slots; return the pool in the end."""
        model = self._model
        if self._kind == "worker group":
            model = with_slots(model, {self._name: slots})
        else:
            slots_of = {**model.concurrency, self._name: slots}
            model = model.model_copy(update={"concurrency": slots_of})
        cluster = play(model, self._question, prepared=self._prepared)
        pools = cluster.groups if self._kind == "worker group" else cluster.concurrency
        return pools[self._name]

    def never_waits(self) -> int | None:
        """Return the most slots that are taken at once where there are plenty."""
        pool = self._with(_PLENTY)
        return pool.most_taken or None

    def enough(
        self, too_few: int, never_waits: int | None, attempts: int
    ) -> tuple[int | None, float | None]:
        """Return a number of slots with which no wait exceeds the limit, and the longest then.

        One fewer is too few, as far as more slots never make a wait longer; mostly they do not.
        """
        if never_waits is None or never_waits <= too_few:
            return None, None
        steps = (never_waits - too_few).bit_length()
        if attempts * steps > MOST_SEARCHED:
            return None, None
        best, longest_s = never_waits, 0.0
        low, high = too_few, never_waits
        while high - low > 1:
            middle = (low + high) // 2
            longest = max(self._with(middle).waits, default=0.0)
            if longest <= self._question.limit_s:
                high, best, longest_s = middle, middle, longest
            else:
                low = middle
        return best, round(longest_s, 3)


def _shares(congestion: Congestion) -> tuple[Share, ...]:
    total = sum(congestion.slot_s.values())
    if not total:
        return ()
    most = sorted(congestion.slot_s.items(), key=lambda one: (-one[1], one[0]))
    return tuple(
        Share(name, congestion.attempts[name], round(seconds / total, 4))
        for name, seconds in most[:_MOST_NAMED]
    )


def _why(kind: Kind, pool: Pool, congestion: Congestion, shares: tuple[Share, ...]) -> str:
    if not pool.slots:
        what = "no worker" if kind == "worker group" else "no slots"
        return f"the {kind} {pool.name} has {what}"
    slots = "its only slot was" if pool.slots == 1 else f"all {pool.slots:,} slots were"
    tasks = "1 task" if congestion.most_waiting == 1 else f"{congestion.most_waiting:,} tasks"
    longest = format_duration(congestion.longest_s)
    text = f"{slots} taken while up to {tasks} waited, the longest {longest}"
    if shares:
        named = ", ".join(
            f"{one.workflow} {one.share:.0%} ({_attempts(one.attempts)})"
            for one in shares
            if one.share >= _LEAST_NAMED
        )
        text += f"; of the slots' time then: {named}"
    return text


def _attempts(count: int) -> str:
    return "1 attempt" if count == 1 else f"{count:,} attempts"


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
