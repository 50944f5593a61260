"""What a task's placeholders mean: which definition of a parameter counts, and what day it is.

Levels, the outermost first, the innermost that has a name wins:

1. the project's parameters, as they were when the instance was created,
2. the workflow's defaults,
3. the outputs of the tasks upstream,
4. the task's own parameters,
5. what was given at the start.

Outputs are data: they arrive character by character. All others are definitions, which may hold
placeholders themselves; values given by people at a start were escaped when they came in.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from shoal.core.definition.model import BackfillBase
from shoal.core.definition.parameters import PROJECT_PREFIX
from shoal.core.macros import placeholders
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.states import TaskState
from shoal.core.task_types import CommandLine, TaskParams, Verbatim, fields_marked
from shoal.core.timing import wallclock
from shoal.core.untrusted import Budget

Secret = Callable[[str], str]
Levels = Sequence[Mapping[str, str]]


class SecretUnusable(placeholders.InvalidMacro):
    """A secret stands where it must not go: on a command line, or in a task without a worker."""


class TaskScope:
    """Everything that the texts of one attempt may refer to.

    A parameter is rendered when a text or a caller asks for it, and all that is rendered for one
    scope has one budget (``RENDER_STEPS``, ``RENDER_CHARACTERS``). Beyond it InvalidMacro is
    raised.

    ``secret`` returns a secret's value by its name, or raises. Without it, texts that need a
    secret raise SecretUnusable: a task that the master runs itself never sees one. ``own`` are
    the task's ``levels``, for a caller that knows them already. ``within``: the budget of several
    scopes together.
    """

    def __init__(
        self,
        run: Run,
        attempt: Attempt,
        secret: Secret | None = None,
        own: Levels | None = None,
        within: Budget | None = None,
    ) -> None:
        self._task = run.plan.tasks[attempt.task]
        own = levels(run, attempt.task) if own is None else own
        self._levels = own
        system = system_parameters(run, attempt)
        base = base_of(run)
        budget = Budget(placeholders.RENDER_STEPS, placeholders.RENDER_CHARACTERS, within)
        # The innermost: a name with a dot cannot be defined.
        self._renderer = placeholders.Renderer(base, [*own, system], secret or _no_secret, budget)
        self._programs = placeholders.Renderer(base, [system], budget=budget)

    @cached_property
    def _names(self) -> list[str]:
        return sorted({name for level in self._levels for name in level})

    def parameters(self) -> dict[str, str]:
        """Return all parameters, rendered. Raises InvalidMacro."""
        return {name: self._renderer.value(name)[0] for name in self._names}

    def named_parameters(self) -> Mapping[str, str]:
        """Return all parameters as a mapping that renders a value when it is read.

        Reading a value raises InvalidMacro.
        """
        return _RenderedOnRead(self._names, self._renderer)

    def parameters_without_secrets(self) -> dict[str, str]:
        """Return the parameters that hold no secret, rendered. Raises InvalidMacro."""
        found = {}
        for name in self._names:
            try:
                found[name] = self._renderer.value(name)[0]
            except SecretUnusable:
                continue
        return found

    def params(self, model: type[TaskParams]) -> dict[str, Any]:
        """Return the task's ``params``, rendered; programs without the parameters.

        ``model`` is that of the task's type. Raises InvalidMacro, and SecretUnusable for a secret
        that would stand on a command line.
        """
        programs, command_line = fields_marked(model, Verbatim), fields_marked(model, CommandLine)
        rendered = {}
        for name, value in self._task.params.items():
            if name in programs:
                rendered[name] = _each_text(value, self._programs.render)
            elif name in command_line:
                rendered[name] = _each_text(value, self._without_secrets)
            else:
                rendered[name] = _each_text(value, self._renderer.render)
        return rendered

    def render(self, text: str) -> str:
        """Return one text, rendered. Raises InvalidMacro."""
        return self._renderer.render(text)

    def _without_secrets(self, text: str) -> str:
        rendered, secrets = self._renderer.render_tracing(text)
        if secrets:
            reason = (
                f"the secret {min(secrets)} would stand on a command line, where every user of the "
                f"machine could read it; read it from the variable SHOAL_SECRET_{min(secrets)}"
            )
            raise SecretUnusable(text, 0, reason)
        return rendered


class _RenderedOnRead(Mapping[str, str]):
    def __init__(self, names: Sequence[str], renderer: placeholders.Renderer) -> None:
        self._names, self._renderer = dict.fromkeys(names), renderer

    def __getitem__(self, name: str) -> str:
        return self._renderer.value(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _no_secret(name: str) -> str:
    raise SecretUnusable("", 0, f"the secret {name} is for tasks that run on a worker only")


def _each_text(value: Any, render: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return render(value)
    if isinstance(value, Mapping):
        return {key: _each_text(item, render) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(item, render) for item in value]
    return value


def base_of(run: Run) -> datetime:
    """Return what dates are relative to: the logical time, in the zone of the run.

    A calendar day later in a backfill's run of a workflow with ``backfill_base: next_day``.
    """
    zone = ZoneInfo(run.timezone)
    base = run.logical_time.astimezone(zone)
    if run.backfill_id is None or run.plan.spec.backfill_base is BackfillBase.LOGICAL_TIME:
        return base
    return wallclock.at(base.replace(tzinfo=None) + timedelta(days=1), zone, base.fold)


def system_parameters(run: Run, attempt: Attempt) -> dict[str, str]:
    """Return the attempt's identity, under the names that such parameters have elsewhere."""
    return {
        "system.task.instance.id": str(attempt.id),
        "system.task.definition.name": attempt.task,
        "system.workflow.instance.id": str(run.id),
        "system.workflow.definition.name": run.plan.spec.name,
        "system.project.name": run.plan.spec.project,
    }


def levels(run: Run, task: str) -> Levels:
    """Return the definitions of parameters that ``task`` sees, the outermost level first."""
    own = run.plan.spec.parameters
    project = {
        name.removeprefix(PROJECT_PREFIX): value
        for name, value in run.parameters.items()
        if name.startswith(PROJECT_PREFIX) or name not in own
    }
    defaults = {name: spec.default for name, spec in own.items() if name in run.startup}
    workflow = {name: text for name, text in defaults.items() if text is not None}
    workflow |= {n: v for n, v in run.parameters.items() if n in own and n not in run.startup}
    given = upstream_outputs(run, task)
    outputs = {name: placeholders.escape(text) for name, text in given.items()}
    return [project, workflow, outputs, run.plan.tasks[task].parameters, run.startup]


def undeclared(own: Levels) -> set[str]:
    """Return the parameters that only outputs define: tasks choose their names.

    ``own``: the ``levels`` of the task that receives them.
    """
    project, workflow, outputs, task, startup = own
    return outputs.keys() - project.keys() - workflow.keys() - task.keys() - startup.keys()


def upstream_outputs(run: Run, task: str) -> dict[str, str]:
    """Return what the tasks before ``task`` have given on, by name.

    If several give the same name, the nearest counts: the one with the fewest steps on its
    longest way to ``task``, so that a task overrides those before it. Of two equally near the one
    that ended last, then the later one in the definition.
    """
    if not run.givers:
        return {}
    ancestors = _ancestors(run, task)
    givers = [
        run.attempts[name]
        for name in run.plan.tasks
        if name in run.givers and name in ancestors and _gives(run.attempts[name])
    ]
    if sum(len(giver.outputs) for giver in givers) > len({n for g in givers for n in g.outputs}):
        steps = _steps(run, task, ancestors)
        givers.sort(key=lambda giver: (-steps[giver.task], giver.finished_at or run.created_at))
    return {name: value for giver in givers for name, value in giver.outputs.items()}


def _gives(attempt: Attempt) -> bool:
    return bool(attempt.outputs) and attempt.state is TaskState.SUCCEEDED


def _ancestors(run: Run, task: str) -> set[str]:
    found: set[str] = set()
    waiting = [task]
    while waiting:
        for parent in run.plan.upstream[waiting.pop()]:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def _steps(run: Run, task: str, ancestors: set[str]) -> dict[str, int]:
    """Return the length of the longest way from each ancestor to ``task``."""
    unseen = {
        name: sum(child == task or child in ancestors for child in run.plan.downstream[name])
        for name in ancestors
    }
    steps = {task: 0}
    ready = deque([task])
    while ready:
        name = ready.popleft()
        for parent in run.plan.upstream[name]:
            steps[parent] = max(steps.get(parent, 0), steps[name] + 1)
            unseen[parent] -= 1
            if not unseen[parent]:
                ready.append(parent)
    return steps
