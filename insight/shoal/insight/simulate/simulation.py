"""One simulation: a model, a time, a seed."""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shoal.core.errors import ShoalError
from shoal.insight.simulate.engine.arrivals import Arrival, fired, requested
from shoal.insight.simulate.engine.cluster import SimulatedCluster
from shoal.insight.simulate.engine.workers import OnClaim
from shoal.insight.simulate.engine.workflow import PreparedPlan
from shoal.insight.simulate.model import Model

LIMIT_S = 60.0
LONGEST = timedelta(days=366)


class InvalidPeriod(ShoalError, ValueError):
    """A time that cannot be simulated."""


@dataclass(frozen=True)
class Question:
    """What is to be simulated.

    ``start`` and ``end`` are aware UTC datetimes. ``limit_s``: how long a task may wait for a slot
    before that counts as a bottleneck. ``shifts``: by how much the schedules of workflows fire
    later, by PROJECT/NAME. Raises InvalidPeriod.
    """

    start: datetime
    end: datetime
    seed: int = 1
    limit_s: float = LIMIT_S
    shifts: Mapping[str, timedelta] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.end - self.start <= LONGEST:
            raise InvalidPeriod(
                f"a simulation lasts more than nothing and at most {LONGEST.days} days, "
                f"not {self.end - self.start}"
            )


def play(
    model: Model,
    question: Question,
    *,
    prepared: PreparedPlan | None = None,
    arrivals: Iterable[Arrival] | None = None,
    on_claim: OnClaim | None = None,
) -> SimulatedCluster:
    """Simulate and return the cluster as it is in the end.

    ``arrivals``: what starts, in the order of time; None: what the timetables and rates say.
    ``on_claim``: see ``SimulatedCluster``.
    """
    prepared = prepared or PreparedPlan(model, question.shifts)
    cluster = SimulatedCluster(
        prepared.workflows,
        model.groups,
        model.concurrency,
        question.start,
        question.end,
        question.limit_s,
        on_claim,
    )
    cluster.play(iter(_arrivals(prepared, question) if arrivals is None else arrivals))
    return cluster


def _arrivals(prepared: PreparedPlan, question: Question) -> Iterator[Arrival]:
    start, end, seed = question.start, question.end, question.seed
    sources: list[Iterator[Arrival]] = []
    for workflow in prepared.workflows.values():
        sources += [fired(workflow, one, start, end, seed) for one in workflow.schedules]
        if workflow.requests:
            sources.append(requested(workflow, start, end, seed))
    return heapq.merge(*sources, key=lambda arrival: arrival.at)
