"""The tasks that the master runs, for the Python SDK.

Conditions are plain mappings, as in files; the helpers below write them::

    Conditions("how", when=ended(load, "success"), then=[report], otherwise=[mend], depends_on=load)
    Dependent("wait", when=all_of(ran("etl/orders", "today"), ran("etl/stock", "last1Days")))
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, Unpack

from shoal.client.sdk.arguments import Scalar, plain, typed
from shoal.client.sdk.workflow import Task, TaskOptions

Condition: TypeAlias = Mapping[str, Any]
Chosen: TypeAlias = "Task | str | Sequence[Task | str]"
OutcomeName: TypeAlias = Literal["success", "failure", "skipped", "done"]


class Conditions(Task):
    """Chooses by the results of upstream tasks. What it chooses from starts after it."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        when: Condition,
        then: Chosen = (),
        otherwise: Chosen = (),
        **options: Unpack[TaskOptions],
    ) -> None:
        params: dict[str, Any] = {"when": dict(when)}
        if _names(then):
            params["then"] = _names(then)
        if _names(otherwise):
            params["else"] = _names(otherwise)
        super().__init__(name, type="CONDITIONS", params=params, **options)
        _start_after(self, then, otherwise)


class Switch(Task):
    """Chooses by expressions over parameters: the first true one counts."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        cases: Mapping[str, Chosen],
        default: Chosen = (),
        **options: Unpack[TaskOptions],
    ) -> None:
        listed = [{"when": text, "then": _names(then)} for text, then in cases.items()]
        params: dict[str, Any] = {"cases": listed}
        if _names(default):
            params["default"] = _names(default)
        super().__init__(name, type="SWITCH", params=params, **options)
        _start_after(self, *cases.values(), default)


class SubWorkflow(Task):
    """Runs another workflow, given as ``name`` or ``project/name``."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        runs: str,
        version: int | None = None,
        given: Mapping[str, Scalar] | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = _child(runs, version, given)
        super().__init__(name, type="SUB_WORKFLOW", params=params, **options)


class Map(Task):
    """Runs another workflow once for each item; a text renders to a JSON list."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        runs: str,
        items: Sequence[Scalar] | str,
        parameter: str = "item",
        parallel: int = 10,
        version: int | None = None,
        given: Mapping[str, Scalar] | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        params = _child(runs, version, given)
        params["items"] = items if isinstance(items, str) else plain(list(items))
        params |= {"parameter": parameter, "parallel": parallel}
        super().__init__(name, type="MAP", params=params, **options)


class Dependent(Task):
    """Waits for runs of other workflows."""

    @typed
    def __init__(self, name: str, *, when: Condition, **options: Unpack[TaskOptions]) -> None:
        super().__init__(name, type="DEPENDENT", params={"when": dict(when)}, **options)


@typed
def ended(task: Task | str, how: OutcomeName = "success") -> Condition:
    """The upstream task ended in this way."""
    return {"task": _names(task)[0], "is": how}


@typed
def ran(
    workflow: str,
    date: str,
    *,
    task: str | None = None,
    if_missing: Literal["wait", "fail", "skip"] = "wait",
) -> Condition:
    """Each interval of the date value holds a run that succeeded (of the task, if one is named)."""
    project, slash, name = workflow.rpartition("/")
    condition = {"workflow": name, "date": date}
    condition |= {"project": project} if slash else {}
    condition |= {"task": task} if task else {}
    return condition | ({"if_missing": if_missing} if if_missing != "wait" else {})


@typed
def all_of(*conditions: Condition) -> Condition:
    """All of them hold."""
    return {"all": [dict(one) for one in conditions]}


@typed
def any_of(*conditions: Condition) -> Condition:
    """At least one of them holds."""
    return {"any": [dict(one) for one in conditions]}


@typed
def none_of(condition: Condition) -> Condition:
    """It does not hold (not for DEPENDENT)."""
    return {"not": dict(condition)}


def _names(tasks: Chosen) -> list[str]:
    listed = [tasks] if isinstance(tasks, Task | str) else tasks
    return [one if isinstance(one, str) else one.name for one in listed]


def _start_after(chooser: Task, *chosen: Chosen) -> None:
    for tasks in chosen:
        for one in [tasks] if isinstance(tasks, Task | str) else tasks:
            if isinstance(one, Task):
                one.after(chooser)


def _child(runs: str, version: int | None, given: Mapping[str, Scalar] | None) -> dict[str, Any]:
    project, slash, name = runs.rpartition("/")
    params: dict[str, Any] = {"workflow": name}
    params |= {"project": project} if slash else {}
    params |= {"version": version} if version is not None else {}
    return params | ({"parameters": plain(given)} if given else {})
