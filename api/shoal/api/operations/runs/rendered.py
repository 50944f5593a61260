"""What tasks would get, or get: their params and parameters rendered, secrets masked.

Values of secrets are not even read: every one is shown as the same mask.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shoal.api.web.answers import MOST_AT_ONCE
from shoal.core.definition.kinds import is_logic
from shoal.core.definition.labels import inherited
from shoal.core.definition.model import WorkflowSpec
from shoal.core.definition.parameters import launch
from shoal.core.definition.selection import Selection
from shoal.core.errors import ShoalError
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.scope import TaskScope
from shoal.core.runs.states import WorkflowState
from shoal.core.task_types import TaskParams
from shoal.runtime.plugins import load_task_type
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound

MASK = "******"


@dataclass(frozen=True)
class RenderedTask:
    """What one task gets; ``problem``: why that cannot be said."""

    params: Mapping[str, Any]
    parameters: Mapping[str, str]
    problem: str | None = None


@dataclass(frozen=True)
class Start:
    """What a START asks for."""

    project: str
    workflow: str
    version: int | None
    parameters: Mapping[str, str]
    logical_time: datetime
    priority: int | None
    selection: Selection | None
    labels: Mapping[str, str]


@dataclass(frozen=True)
class PreviewedRun:
    """The run that a START would make, and its labels. It has the id 0, as its attempts have."""

    run: Run
    labels: Mapping[str, str]


async def planned(uow: UnitOfWork, start: Start) -> PreviewedRun:
    """Return the run that a start would make now. Raises NotFound.

    What it is given has been checked: see ``check_parameters`` and ``check_tasks``.
    """
    version = await uow.workflows.version_by_name(start.project, start.workflow, start.version)
    origins = await uow.workflows.origins([version.workflow_id])
    parameters = origins[version.workflow_id].parameters
    return await _planned(version.spec, version.version, parameters, start)


async def planned_of(uow: UnitOfWork, spec: WorkflowSpec, start: Start) -> PreviewedRun:
    """Return the run that a start would make if a definition were published now.

    Raises NotFound if there is no such project.
    """
    try:
        newest = (await uow.workflows.get(start.project, start.workflow)).version
    except NotFound:
        newest = 0
    parameters = await uow.projects.parameters(start.project)
    return await _planned(spec, newest + 1, parameters, start)


async def _planned(
    spec: WorkflowSpec, version: int, of_project: Mapping[str, str], start: Start
) -> PreviewedRun:
    if len(spec.tasks) > MOST_AT_ONCE:
        return await asyncio.to_thread(_run_of, spec, version, of_project, start)
    return _run_of(spec, version, of_project, start)


def _run_of(
    spec: WorkflowSpec, version: int, of_project: Mapping[str, str], start: Start
) -> PreviewedRun:
    """Return the run that a start of a definition would make. On any thread."""
    plan = WorkflowPlan.of(spec)
    launched = launch(spec.parameters, of_project, start.parameters)
    selected = None
    if start.selection is not None:
        selected = start.selection.of(plan.upstream, plan.downstream)
    run = Run(
        id=0,
        plan=plan,
        state=WorkflowState.QUEUED,
        partition=0,
        attempts={task: Attempt(task, 1, id=0) for task in plan.tasks},
        created_at=start.logical_time,
        logical_time=start.logical_time,
        parameters=launched.parameters,
        priority=spec.priority if start.priority is None else start.priority,
        version=version,
        timezone=spec.timezone,
        startup=launched.startup,
        selected=selected,
    )
    return PreviewedRun(run, inherited(start.labels, {}, spec.labels))


def rendered(run: Run, attempt: Attempt) -> RenderedTask:
    """Return what an attempt gets. On any thread."""
    spec = run.plan.tasks[attempt.task]
    try:
        scope = TaskScope(run, attempt, lambda _: MASK)
        model = TaskParams if is_logic(spec.type) else load_task_type(spec.type).Params
        return RenderedTask(scope.params(model), scope.parameters())
    except ShoalError as error:
        return RenderedTask({}, {}, str(error))
