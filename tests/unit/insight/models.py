"""Small models to simulate, and what is seen of each claim."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.run import Attempt
from shoal.insight.simulate.engine.arrivals import Arrival
from shoal.insight.simulate.engine.chance import key_of
from shoal.insight.simulate.engine.cluster import SimulatedCluster
from shoal.insight.simulate.engine.workflow import PreparedPlan
from shoal.insight.simulate.model import GroupModel, Model, TaskHistory, WorkflowModel
from shoal.insight.simulate.simulation import Question, play

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def workflow(
    name: str,
    tasks: Mapping[str, Mapping[str, Any]],
    seconds: Mapping[str, float | Sequence[float]] | None = None,
    *,
    cron: str | None = None,
    history: Mapping[str, TaskHistory] | None = None,
    requests: Mapping[int, float] | None = None,
    **fields: Any,
) -> WorkflowModel:
    """A workflow of SHELL tasks that take so many seconds, or one of several lengths."""
    definition = {
        "name": name,
        "tasks": [
            {
                "name": task,
                "type": "SHELL",
                **({} if "type" in given else {"params": {"script": "true"}}),
                **given,
            }
            for task, given in tasks.items()
        ],
        "schedules": [{"cron": cron}] if cron else [],
        **fields,
    }
    lengths = {
        task: TaskHistory(seconds=(one,) if isinstance(one, int | float) else tuple(one))
        for task, one in (seconds or {}).items()
    }
    return WorkflowModel(
        definition=WorkflowSpec.model_validate(definition),
        tasks={**lengths, **(history or {})},
        requests=dict(requests or {}),
    )


def model(*workflows: WorkflowModel, slots: int | Mapping[str, int] = 2, **fields: Any) -> Model:
    """These workflows, and slots of the group default, or of several."""
    groups = {"default": slots} if isinstance(slots, int) else slots
    return Model(
        at=MONDAY,
        groups={name: GroupModel(slots=count) for name, count in groups.items()},
        workflows=workflows,
        **fields,
    )


def question(hours: float = 24.0, **fields: Any) -> Question:
    """So many hours from a Monday on."""
    return Question(MONDAY, MONDAY + hours * HOUR, **fields)


def arrival(name: str, at_s: float, number: int = 0, **fields: Any) -> Arrival:
    """A run that somebody asks for, so many seconds after the Monday has begun."""
    at = MONDAY + timedelta(seconds=at_s)
    key = key_of(f"{name} {at_s} {number}")
    return Arrival(at, f"default/{name}", key, at, "UTC", **fields)


class Claims:
    """What was claimed: the key of the run, the task, the number of the attempt, its wait."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str, int, float]] = []

    def __call__(self, key: int, group: str, attempt: Attempt, wait_s: float) -> None:
        self.seen.append((key, attempt.task, attempt.number, wait_s))

    def waits(self) -> list[float]:
        return [wait_s for *_, wait_s in self.seen]


def played(
    simulated: Model, arrivals: Sequence[Arrival], hours: float = 24.0, **fields: Any
) -> tuple[SimulatedCluster, Claims]:
    """Play runs that start at given times."""
    claims = Claims()
    asked = question(hours, **fields)
    prepared = PreparedPlan(simulated, asked.shifts)
    ordered = sorted(arrivals, key=lambda one: one.at)
    cluster = play(simulated, asked, prepared=prepared, arrivals=ordered, on_claim=claims)
    return cluster, claims
