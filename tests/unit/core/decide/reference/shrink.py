"""Cut a failing case down to what it needs to fail."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from shoal.core.checks.workflow import InvalidDefinition
from shoal.runtime.plugins import check_definition
from tests.unit.core.decide.reference.cases import Case, as_written
from tests.unit.core.decide.reference.instances import Difference
from tests.unit.core.decide.reference.play import replay

BUDGET = 3_000  # replays


def difference_of(case: Case) -> str | None:
    """What is wrong with the case, None if nothing is."""
    try:
        replay(case)
    except Difference as difference:
        return str(difference)
    return None


def shrink(case: Case) -> Case:
    """Return a case that still fails, and from which nothing can be left out any more."""
    left, progress = BUDGET, True
    kind = kind_of(difference_of(case))
    while progress:
        progress = False
        for smaller in smaller_cases(case):
            left -= 1
            if left < 0:
                return case
            if is_valid(smaller) and kind_of(difference_of(smaller)) == kind:
                case, progress = smaller, True
                break
    return case


def kind_of(difference: str | None) -> str | None:
    """The difference without names and numbers."""
    return difference and re.sub(r"'[a-l]'|\b[a-l]\b|\d+", "#", difference)[:80]


def is_valid(case: Case) -> bool:
    """Whether the definition could be saved."""
    try:
        check_definition(as_written(case))
    except InvalidDefinition:
        return False
    return True


def smaller_cases(case: Case) -> Iterator[Case]:
    """Cases with a little less: moves first, in big pieces, then tasks, then single fields."""
    size = len(case.moves)
    while size:
        for start in range(0, len(case.moves), size):
            yield replace(case, moves=case.moves[:start] + case.moves[start + size :])
        size //= 2
    for task in case.definition["tasks"]:
        if len(case.definition["tasks"]) > 1:
            yield without_task(case, task)
    for field in ("timeout", "timeout_action", "on_failure"):
        if field in case.definition:
            rest = {key: value for key, value in case.definition.items() if key != field}
            yield replace(case, definition=rest)
    for task in sorted(case.failing):
        yield replace(case, failing=case.failing - {task})
    if case.selected is not None:
        yield replace(case, selected=None)
    if not case.admitted:
        yield replace(case, admitted=True)
    yield from simpler_tasks(case)


def simpler_tasks(case: Case) -> Iterator[Case]:
    """Cases in which one task has a field or an upstream task less."""
    for name, task in case.definition["tasks"].items():
        for field in task:
            if field == "type":  # a SHELL task instead
                yield with_task(case, name, {k: v for k, v in task.items() if k not in PLAIN})
            elif field not in ("params", "depends_on"):
                yield with_task(case, name, {k: v for k, v in task.items() if k != field})
        for upstream in task["depends_on"]:
            fewer = [other for other in task["depends_on"] if other != upstream]
            yield with_task(case, name, {**task, "depends_on": fewer})


PLAIN = ("type", "params")


def with_task(case: Case, name: str, task: Mapping[str, Any]) -> Case:
    """The case with another version of one task."""
    return checked(case, {**case.definition["tasks"], name: dict(task)})


def without_task(case: Case, gone: str) -> Case:
    """The case without one task; requests that name it fall away."""
    tasks = {
        name: {**task, "depends_on": [other for other in task["depends_on"] if other != gone]}
        for name, task in case.definition["tasks"].items()
        if name != gone
    }
    selected = case.selected and (case.selected - {gone} or None)
    moves = tuple(move for move in case.moves if move[0] != "request" or gone not in move[2:])
    return replace(checked(case, tasks), selected=selected, moves=moves)


def checked(case: Case, tasks: dict[str, dict[str, Any]]) -> Case:
    """The case with these tasks, whose references are put right."""
    for name, task in tasks.items():
        if not task["depends_on"] and task.get("run_when") == "any_failed":
            tasks[name] = {key: value for key, value in task.items() if key != "run_when"}
        behind = [other for other in tasks if name in tasks[other]["depends_on"]]
        if task.get("type") == "CONDITIONS":
            condition = pruned(task["params"]["when"], task["depends_on"])
            if condition is None:
                tasks[name] = {key: value for key, value in task.items() if key not in PLAIN}
                continue
            lists = {key: kept(task["params"][key], behind) for key in ("then", "else")}
            tasks[name] = {**task, "params": {"when": condition, **lists}}
        elif task.get("type") == "SWITCH":
            cases = [{**one, "then": kept(one["then"], behind)} for one in task["params"]["cases"]]
            params = {"cases": cases, "default": kept(task["params"]["default"], behind)}
            tasks[name] = {**task, "params": params}
    return replace(case, definition={**case.definition, "tasks": tasks})


def kept(tasks: list[str], known: list[str]) -> list[str]:
    """Those of the tasks that are known."""
    return [task for task in tasks if task in known]


def pruned(condition: dict[str, Any], upstream: list[str]) -> dict[str, Any] | None:
    """The condition without what speaks of other tasks; None if nothing is left."""
    if "task" in condition:
        return condition if condition["task"] in upstream else None
    if "not" in condition:
        inner = pruned(condition["not"], upstream)
        return inner and {"not": inner}
    kind = "all" if "all" in condition else "any"
    parts = [part for one in condition[kind] if (part := pruned(one, upstream)) is not None]
    return {kind: parts} if parts else None
