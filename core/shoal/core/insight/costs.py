"""What was used, by project, workflow, task or label."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from shoal.core.insight.days import Cost, costs_of
from shoal.core.insight.windows import Window, rate


class CostBy(StrEnum):
    """By what costs are added up."""

    PROJECT = "project"
    WORKFLOW = "workflow"
    TASK = "task"
    LABEL = "label"


CostName = tuple[
    str, ...
]  # (project), (project, workflow), (project, workflow, task), (label, value)


@dataclass(frozen=True)
class CostGroup:
    """What one of them has used in a window and in the one before; ``share`` of all slots."""

    name: CostName
    now: Cost
    before: Cost
    share: float | None


def cost_groups(
    window: Window, rows: Iterable[tuple[date, CostName, Cost]], total: Cost
) -> list[CostGroup]:
    """Return the costs by name, the most seconds of slots first.

    ``total``: of the window. Labels may add up to more than that: a run can have several.
    """
    now: dict[CostName, list[Cost]] = {}
    before: dict[CostName, list[Cost]] = {}
    earlier = window.before
    for day, name, cost in rows:
        if window.has(day):
            now.setdefault(name, []).append(cost)
        elif earlier.has(day):
            before.setdefault(name, []).append(cost)
    found = []
    for name in now.keys() | before.keys():
        used = costs_of(now.get(name, ()))
        share = rate(used.slot_s, total.slot_s)
        found.append(CostGroup(name, used, costs_of(before.get(name, ())), share))
    return sorted(found, key=lambda one: (-one.now.slot_s, -one.before.slot_s, one.name))
