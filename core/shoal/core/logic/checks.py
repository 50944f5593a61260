"""What must be right about a task that the master runs, beyond the shape of its ``params``."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from shoal.core.definition.kinds import LogicKind, choices_of, is_logic, named_in
from shoal.core.definition.model import RunWhen, TaskSpec, TimeoutAction, WorkflowSpec
from shoal.core.hints import Hints
from shoal.core.logic.children import MapParams, SubWorkflowParams
from shoal.core.logic.conditions import ConditionsParams
from shoal.core.logic.dependent import DependentParams

Finding = tuple[tuple[str | int, ...], str]

__all__ = ["findings"]


def findings(spec: WorkflowSpec, hints: Hints) -> Iterator[Finding]:
    """Yield what is wrong: the path of the field, and the message."""
    downstream: dict[str, list[str]] = {task.name: [] for task in spec.tasks}
    for task in spec.tasks:
        for upstream in task.depends_on:
            downstream.setdefault(upstream, []).append(task.name)
    for index, task in enumerate(spec.tasks):
        path = ("tasks", index)
        if task.run_when is RunWhen.ANY_FAILED and not task.depends_on:
            yield (*path, "run_when"), "any_failed needs upstream tasks that could fail"
        if not is_logic(task.type):
            continue
        try:
            of_kind = list(_of_kind(spec, task, downstream[task.name], hints))
        except (ValidationError, KeyError, TypeError, AttributeError):
            continue  # the check of ``params`` has said what is wrong with them
        for where, message in (*_of_any(task), *of_kind):
            yield (*path, *where), message


def _of_any(task: TaskSpec) -> Iterator[Finding]:
    """The master runs the task: what speaks of workers means nothing."""
    if task.worker_group != "default":
        yield ("worker_group",), f"a {task.type} task runs in the master, not on a worker"
    if task.type in (LogicKind.CONDITIONS, LogicKind.SWITCH):
        for name in ("retries", "timeout", "delay", "concurrency_group"):
            if getattr(task, name):
                yield (name,), f"a {task.type} task takes no time and cannot be tried again"
        if task.timeout_action is not TimeoutAction.FAIL:
            yield ("timeout_action",), f"a {task.type} task has no timeout"


def _of_kind(
    spec: WorkflowSpec, task: TaskSpec, downstream: Sequence[str], hints: Hints
) -> Iterator[Finding]:
    match task.type:
        case LogicKind.CONDITIONS:
            ConditionsParams.model_validate(task.params)
            if task.run_when not in (RunWhen.ALL_SUCCESS, RunWhen.ALL_DONE):
                yield ("run_when",), "a CONDITIONS task always waits for all its upstream tasks"
            for name in sorted(named_in(task.params["when"]) - set(task.depends_on)):
                yield (
                    ("params", "when"),
                    f"{name!r} is not a direct upstream task; it must stand in depends_on"
                    + hints.of(name, task.depends_on),
                )
            yield from _targets(task, downstream, hints)
        case LogicKind.SWITCH:
            yield from _targets(task, downstream, hints)
        case LogicKind.SUB_WORKFLOW | LogicKind.MAP:
            model = MapParams if task.type == LogicKind.MAP else SubWorkflowParams
            child = model.model_validate(task.params)
            if (child.project or spec.project, child.workflow) == (spec.project, spec.name):
                yield ("params", "workflow"), "a workflow cannot run itself as its sub-workflow"
        case _:
            DependentParams.model_validate(task.params)


def _targets(task: TaskSpec, downstream: Sequence[str], hints: Hints) -> Iterator[Finding]:
    for name in sorted(choices_of(task) - set(downstream)):
        yield (
            ("params",),
            f"{name!r} cannot be chosen: it must be a task that names {task.name!r} in depends_on"
            + hints.of(name, downstream),
        )
