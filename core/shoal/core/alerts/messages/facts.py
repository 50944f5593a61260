"""What a message is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shoal.core.alerts.records import Alert, Delivery
from shoal.core.runs.records import Instance, TaskInstance


@dataclass(frozen=True)
class RunFacts:
    """A run, with those of its tasks that matter most: what failed first."""

    run: Instance
    tasks: Sequence[TaskInstance]
    more_tasks: int


@dataclass(frozen=True)
class Facts:
    """``alerts``: the newest ones; ``total``: how many there are. The others are by their ids.

    ``results``: the attempts whose outputs are told.
    """

    delivery: Delivery
    alerts: Sequence[Alert]
    total: int
    runs: Mapping[int, RunFacts]
    now: datetime
    results: Mapping[int, TaskInstance] = field(default_factory=dict)
