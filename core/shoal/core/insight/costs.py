"""What was used, by project, workflow, task or label."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

from shoal.core.insight.days import Cost
from shoal.core.insight.windows import DayWindow, rate


class CostBy(StrEnum):
    """By what costs are added up."""

    PROJECT = "project"
    WORKFLOW = "workflow"
    TASK = "task"
    LABEL = "label"


CostName = tuple[
    str, ...
]  # (project), (project, workflow), (project, workflow, task), (label, value)
Named = Iterable[tuple[CostName, Cost]]


@dataclass(frozen=True)
class CostGroup:
    """What one of them has used in a window and in the one before; ``share`` of all slots."""

    name: CostName
    now: Cost
    before: Cost
    share: float | None


def cost_groups(window: DayWindow, days: Mapping[date, Named], total: Cost) -> list[CostGroup]:
    """Return the costs by name, the most seconds of slots first.

    ``total``: of the window. Labels may add up to more than that: a run can have several.
    """
    now = _by_name(some for day, some in days.items() if window.has(day))
    before = _by_name(some for day, some in days.items() if window.before.has(day))
    nothing = Cost()
    found = []
    for name in now.keys() | before.keys():
        used = now.get(name, nothing)
        share = rate(used.slot_s, total.slot_s)
        found.append(CostGroup(name, used, before.get(name, nothing), share))
    return sorted(found, key=lambda one: (-one.now.slot_s, -one.before.slot_s, one.name))


def _by_name(days: Iterable[Named]) -> dict[CostName, Cost]:
    """Add up days. In place: a list of each name's costs takes several times as long."""
    sums: dict[CostName, list[Any]] = {}
    for some in days:
        for name, (attempts, cpu_s, memory_gb_s, slot_s) in some:
            one = sums.get(name)
            if one is None:
                sums[name] = [attempts, cpu_s, memory_gb_s, slot_s]
            else:
                one[0] += attempts
                one[1] += cpu_s
                one[2] += memory_gb_s
                one[3] += slot_s
    return {name: Cost._make(one) for name, one in sums.items()}
