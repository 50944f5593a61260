"""What the graph needs to know of the tasks that the master runs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.core.definition.model import TaskSpec


class LogicKind(StrEnum):
    """Types of tasks that take no worker."""

    CONDITIONS = "CONDITIONS"  # chooses by the results of its upstream tasks
    SWITCH = "SWITCH"  # chooses by the values of parameters
    SUB_WORKFLOW = "SUB_WORKFLOW"  # runs another workflow
    MAP = "MAP"  # runs another workflow for each item of a list
    DEPENDENT = "DEPENDENT"  # waits for runs of other workflows


# These wait while others work for them, for minutes or days; choices take no time.
LASTING = frozenset({LogicKind.SUB_WORKFLOW, LogicKind.MAP, LogicKind.DEPENDENT})
CHOOSERS = frozenset({LogicKind.CONDITIONS, LogicKind.SWITCH})
WITH_CHILDREN = frozenset({LogicKind.SUB_WORKFLOW, LogicKind.MAP})


def is_logic(task_type: str) -> bool:
    """Say whether the master runs tasks of this type."""
    return task_type in LogicKind.__members__


def choices_of(task: "TaskSpec") -> frozenset[str]:
    """Return the tasks that a CONDITIONS or SWITCH task chooses from; none for other types."""
    match task.type:
        case LogicKind.CONDITIONS:
            return _names(task.params.get("then")) | _names(task.params.get("else"))
        case LogicKind.SWITCH:
            chosen = frozenset[str]().union(*(_names(c["then"]) for c in task.params["cases"]))
            return chosen | _names(task.params.get("default"))
        case _:
            return frozenset()


def _names(value: Any) -> frozenset[str]:
    """Return the tasks of a list as people write it: one name, several, or nothing."""
    return frozenset({value} if isinstance(value, str) else value or ())


def judges_of(tasks: Iterable["TaskSpec"]) -> Mapping[str, tuple[str, ...]]:
    """Return, by task, the CONDITIONS tasks whose condition names it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for task in tasks:
        if task.type == LogicKind.CONDITIONS:
            for name in named_in(task.params["when"]):
                found[name].append(task.name)
    return {name: tuple(judges) for name, judges in found.items()}


def named_in(condition: Mapping[str, Any]) -> frozenset[str]:
    """Return the tasks that a condition speaks of."""
    if "task" in condition:
        return frozenset({condition["task"]})
    inner = condition.get("all") or condition.get("any") or [condition["not"]]
    return frozenset[str]().union(*(named_in(one) for one in inner))
