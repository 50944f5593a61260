"""What a simulation says: of worker groups, concurrency groups and workflows, as plain values.

``Result.as_json`` is the document that ``shoal simulate --json`` prints. Seconds are floats, times
RFC 3339 texts in UTC.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from shoal.insight.simulate.bottleneck import Bottleneck, first_bottleneck
from shoal.insight.simulate.engine.chance import quantile
from shoal.insight.simulate.engine.cluster import SimulatedCluster
from shoal.insight.simulate.engine.pool import Pool
from shoal.insight.simulate.engine.workflow import PreparedPlan
from shoal.insight.simulate.model import Model
from shoal.insight.simulate.simulation import Question, play

_MOST_SENTENCES = 20  # about tasks that could not be simulated as they are


@dataclass(frozen=True)
class Spread:
    """Some lengths of time in seconds; all 0 if there are none."""

    count: int
    p50_s: float
    p95_s: float
    max_s: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Return the spread of values in any order."""
        ordered = sorted(values)
        if not ordered:
            return cls(0, 0.0, 0.0, 0.0)
        p50, p95 = quantile(ordered, 0.5), quantile(ordered, 0.95)
        return cls(len(ordered), round(p50, 3), round(p95, 3), round(ordered[-1], 3))


@dataclass(frozen=True)
class HourOfPool:
    """One hour. ``utilisation``: from 0 to 1; ``longest_s``: the longest wait that ended in it."""

    at: str
    utilisation: float
    longest_s: float
    most_waiting: int
    attempts: int


@dataclass(frozen=True)
class PoolResult:
    """A worker group or a concurrency group.

    ``waits`` are those of attempts for a slot, of those too that still wait at the end.
    ``congested``: how often tasks waited longer than the limit; ``congested_s``: for how long.
    """

    name: str
    slots: int
    utilisation: float
    busy_s: float
    most_taken: int
    attempts: int
    waits: Spread
    still_waiting: int
    congested: int
    congested_s: float
    hours: tuple[HourOfPool, ...]


@dataclass(frozen=True)
class WorkflowResult:
    """A workflow. ``late``: by how much runs missed their deadlines, of those that did.

    ``waits``: of its tasks for a worker, ``admission``: of its runs for other runs of it.
    """

    name: str
    runs: int
    succeeded: int
    failed: int
    stopped: int
    unfinished: int
    refused: int
    lasted: Spread
    waits: Spread
    admission: Spread
    with_deadline: int
    late: Spread
    first_late_at: str | None
    reasons: Mapping[str, int]


@dataclass(frozen=True)
class SimulationResult:
    """Everything that a simulation says. ``left_out``: what it did not or could not simulate."""

    start: str
    end: str
    seed: int
    limit_s: float
    runs: int
    attempts: int
    groups: tuple[PoolResult, ...]
    concurrency: tuple[PoolResult, ...]
    workflows: tuple[WorkflowResult, ...]
    bottleneck: Bottleneck | None
    left_out: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @property
    def late(self) -> list[WorkflowResult]:
        """The workflows with late runs, the latest first."""
        found = [one for one in self.workflows if one.late.count]
        return sorted(found, key=lambda one: (-one.late.max_s, one.name))


def simulate(model: Model, question: Question) -> SimulationResult:
    """Simulate, and simulate again with more slots to find how many would be enough."""
    prepared = PreparedPlan(model, question.shifts)
    cluster = play(model, question, prepared=prepared)
    bottleneck = first_bottleneck(model, question, prepared, cluster)
    return result_of(model, question, prepared, cluster, bottleneck)


def result_of(
    model: Model,
    question: Question,
    prepared: PreparedPlan,
    cluster: SimulatedCluster,
    bottleneck: Bottleneck | None,
) -> SimulationResult:
    """Return what a simulated cluster says."""
    workflows = tuple(
        WorkflowResult(
            name=name,
            runs=notes.runs,
            succeeded=notes.succeeded,
            failed=notes.failed,
            stopped=notes.stopped,
            unfinished=notes.unfinished,
            refused=notes.refused,
            lasted=Spread.of(notes.lasted),
            waits=Spread.of(notes.waits),
            admission=Spread.of(notes.admission),
            with_deadline=notes.with_deadline,
            late=Spread.of(notes.late),
            first_late_at=_text(notes.first_late_at) if notes.first_late_at else None,
            reasons=dict(notes.reasons),
        )
        for name, notes in cluster.ledger.of.items()
    )
    return SimulationResult(
        start=_text(question.start),
        end=_text(question.end),
        seed=question.seed,
        limit_s=question.limit_s,
        runs=sum(one.runs for one in workflows),
        attempts=cluster.attempts,
        groups=tuple(_pool(one, question) for _, one in sorted(cluster.groups.items())),
        concurrency=tuple(_pool(one, question) for _, one in sorted(cluster.concurrency.items())),
        workflows=workflows,
        bottleneck=bottleneck,
        left_out=tuple(_left_out(model, prepared, cluster)),
    )


def _left_out(model: Model, prepared: PreparedPlan, cluster: SimulatedCluster) -> Iterable[str]:
    yield from model.notes
    yield from prepared.assumed
    if cluster.dependencies.assumes:
        yield (
            "runs of before the start that DEPENDENT tasks wait for are taken to have succeeded "
            "where a timetable has a fire time for them"
        )
    for name, pool in sorted(cluster.groups.items()):
        if not pool.slots and pool.waits:
            tasks = f"{pool.still_waiting:,} tasks wait for ever"
            yield f"the worker group {name} has no slots: {tasks}"
    for name, pool in sorted(cluster.concurrency.items()):
        if not pool.slots and pool.waits:
            yield (
                f"the concurrency group {name} has no slots, or is not known: "
                f"{pool.still_waiting:,} tasks wait for ever"
            )
    told = cluster.missing.most_common()
    yield from (f"{what} ({count:,} times)" for what, count in told[:_MOST_SENTENCES])
    if len(told) > _MOST_SENTENCES:
        yield f"and {len(told) - _MOST_SENTENCES} more sentences of this kind"


def _pool(pool: Pool, question: Question) -> PoolResult:
    length_s = (question.end - question.start).total_seconds()
    hours = []
    for index, hour in enumerate(pool.hours):
        at = question.start + timedelta(hours=index)
        lasts_s = min(3_600.0, (question.end - at).total_seconds())
        share = hour.busy_s / (pool.slots * lasts_s) if pool.slots else 0.0
        longest_s = round(hour.longest_s, 3)
        hours.append(
            HourOfPool(_text(at), round(share, 4), longest_s, hour.most_waiting, hour.attempts)
        )
    busy_s = pool.busy_s
    congested_s = sum(
        ((one.until or question.end) - one.since).total_seconds() for one in pool.congestions
    )
    return PoolResult(
        name=pool.name,
        slots=pool.slots,
        utilisation=round(busy_s / (pool.slots * length_s), 4) if pool.slots else 0.0,
        busy_s=round(busy_s, 3),
        most_taken=pool.most_taken,
        attempts=len(pool.waits) - pool.still_waiting,
        waits=Spread.of(pool.waits),
        still_waiting=pool.still_waiting,
        congested=len(pool.congestions),
        congested_s=round(congested_s, 3),
        hours=tuple(hours),
    )


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
