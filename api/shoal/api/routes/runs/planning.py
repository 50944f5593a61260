"""What a start would run, what a task gets, how two runs differ, when tasks worked."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

from fastapi import Body, Path, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import NOTHING, needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.authoring.checks import check
from shoal.api.operations.commands import check_parameters, check_tasks
from shoal.api.operations.runs.rendered import Start, planned, planned_of, rendered
from shoal.api.operations.runs.timeline import critical_path, seconds
from shoal.api.routes.runs.instances import InstanceId
from shoal.api.routes.runs.tasks import TaskInstanceId
from shoal.api.schemas.runs.planning import (
    MOST_RENDERED,
    Bar,
    Comparison,
    PlannedTask,
    RenderedOut,
    RunSide,
    StartPreview,
    StartPreviewIn,
    TaskChange,
    TaskSide,
    Timeline,
    ValueChange,
)
from shoal.api.services import StoreDep
from shoal.api.web.answers import answer, legible
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import MAX_ID
from shoal.api.web.problems import documented
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.definition.fields import Priority
from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.runs.run import Attempt, Run

router = strict_router("instances")


@router.post(
    "/start-previews",
    summary="Show what a start would run",
    response_model=StartPreview,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.PROJECT_READ, audit=NOTHING, large=True)
async def preview_start(
    store: StoreDep, caller: Calling, body: Annotated[StartPreviewIn, Body()]
) -> Response:
    """The version, the parameters, the tasks and what each would get, for a date. Stores nothing.

    Of what is published, or of the `text` of a draft. Secrets are masked. What only a run can know
    is missing: outputs of tasks before, ids.
    """
    if body.mode is not None and body.tasks is None:
        raise InvalidRequest([FieldError("mode", "goes with tasks only")])
    selection = None
    if body.tasks is not None:
        tasks = tuple(dict.fromkeys(body.tasks))
        selection = Selection(tasks, body.mode or SelectionMode.ONLY)
    start = Start(
        body.project,
        body.workflow,
        body.version,
        body.parameters,
        body.logical_time or store.clock(),
        None if body.priority is None else int(Priority[body.priority]),
        selection,
        body.labels,
    )
    spec = None
    if body.text is not None:
        await caller.require(Permission.PROJECT_EDIT, Thing.PROJECT, body.project)
        spec = (await check(body.project, body.workflow, body.text, None)).require()
    async with store.unit_of_work(read_only=True) as uow:
        meant = spec
        if meant is None:
            version = await uow.workflows.version_by_name(body.project, body.workflow, body.version)
            meant = version.spec
        check_parameters(meant, body.parameters)
        shown = Selection(tuple(body.render), SelectionMode.ONLY) if body.render else None
        for chosen in filter(None, (selection, shown)):
            await asyncio.to_thread(check_tasks, meant, chosen)
        found = await (planned(uow, start) if spec is None else planned_of(uow, spec, start))
    run = found.run

    def made() -> StartPreview:
        return StartPreview(
            project=run.plan.spec.project,
            workflow=run.plan.spec.name,
            version=run.version,
            logical_time=run.logical_time,
            timezone=run.timezone,
            priority=Priority(run.priority).name,
            parameters=dict(run.parameters),
            labels=dict(found.labels),
            tasks=list(_tasks(run, body.render)),
        )

    return await answer(made, 10 * len(run.plan.tasks))


def _tasks(run: Run, wanted: list[str] | None) -> Iterator[PlannedTask]:
    left = MOST_RENDERED
    for name, spec in run.plan.tasks.items():
        runs = spec.enabled and (run.selected is None or name in run.selected)
        is_wanted = left > 0 and (runs if wanted is None else name in wanted)
        left -= is_wanted
        yield PlannedTask(
            task=name,
            type=spec.type,
            depends_on=list(spec.depends_on),
            worker_group=spec.worker_group,
            runs=runs,
            rendered=_rendered(run, run.attempts[name]) if is_wanted else None,
        )


def _rendered(run: Run, attempt: Attempt) -> RenderedOut:
    found = rendered(run, attempt)
    return RenderedOut(
        params=dict(found.params), parameters=dict(found.parameters), problem=found.problem
    )


@router.get(
    "/task-instances/{task_instance_id}/rendered",
    summary="Show what an attempt gets",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_rendered_attempt(store: StoreDep, task_instance_id: TaskInstanceId) -> RenderedOut:
    """Params and parameters of one attempt, rendered from what its run holds now.

    Secrets are masked. If tasks before it have run again since, the outputs are theirs.
    """
    async with store.unit_of_work(read_only=True) as uow:
        task = await uow.tasks.get(task_instance_id)
        run = await uow.instances.run(task.workflow_instance_id)
    with legible("task instance", task_instance_id):
        attempt = replace(run.attempts[task.task], id=task.id, number=task.attempt)
        return await asyncio.to_thread(_rendered, run, attempt)


# -- two runs -----------------------------------------------------------------------------------


@router.get(
    "/instances/{instance_id}/comparison/{other_instance_id}",
    summary="Compare two instances",
    response_model=Comparison,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ, large=True)
async def compare_instances(
    store: StoreDep,
    instance_id: InstanceId,
    other_instance_id: Annotated[int, Path(ge=1, le=MAX_ID, examples=[18])],
) -> Response:
    """How the other run differs from this one: parameters, labels, and each task.

    They may be of different versions, or of different workflows: tasks are matched by name.
    """
    ids = (instance_id, other_instance_id)
    async with store.unit_of_work(read_only=True) as uow:
        one, other = [await uow.instances.get(i) for i in ids]
        tasks = [{t.task: t for t in await uow.tasks.of_instance(i)} for i in ids]
        labels = await uow.labels.of(ids)

    def made() -> Comparison:
        with legible("workflow instance", instance_id):
            return Comparison(
                one=_side(one),
                other=_side(other),
                parameters=_changes(one.parameters, other.parameters),
                labels=_changes(labels.get(one.id, {}), labels.get(other.id, {})),
                tasks=list(_task_changes(*tasks)),
            )

    return await answer(made, sum(map(len, tasks)))


def _side(one: Instance) -> RunSide:
    return RunSide.of_record(
        one, instance_id=one.id, seconds=seconds(one.started_at, one.finished_at)
    )


def _changes(one: Mapping[str, str], other: Mapping[str, str]) -> list[ValueChange]:
    return [
        ValueChange(name=name, one=one.get(name), other=other.get(name))
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]


def _task_changes(
    ones: Mapping[str, TaskInstance], others: Mapping[str, TaskInstance]
) -> Iterator[TaskChange]:
    for name in (*others, *(name for name in ones if name not in others)):
        one, other = ones.get(name), others.get(name)
        took = [None if o is None else seconds(o.started_at, o.finished_at) for o in (one, other)]
        yield TaskChange(
            task=name,
            one=_task_side(one),
            other=_task_side(other),
            differs=one is None or other is None or one.state != other.state,
            slower_s=None if took[0] is None or took[1] is None else took[1] - took[0],
        )


def _task_side(one: TaskInstance | None) -> TaskSide | None:
    if one is None:
        return None
    took = seconds(one.started_at, one.finished_at)
    return TaskSide(attempt=one.attempt, state=one.state, seconds=took, worker=one.worker)


# -- time ---------------------------------------------------------------------------------------


@router.get(
    "/instances/{instance_id}/timeline",
    summary="Show when the tasks of an instance worked",
    response_model=Timeline,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_timeline(
    store: StoreDep,
    instance_id: InstanceId,
    every: Annotated[bool, Query(description="Earlier attempts of each task as well.")] = False,
) -> Response:
    """A bar for each attempt, and the path of tasks that made the run last as long as it did."""
    async with store.unit_of_work(read_only=True) as uow:
        instance = await uow.instances.get(instance_id)
        version = await uow.workflows.version(instance.workflow_id, instance.version)
        tasks = await uow.tasks.of_instance(instance_id, every)

    def made() -> Timeline:
        with legible("workflow instance", instance_id):
            newest = {one.task: one for one in tasks}
            upstream = {task.name: task.depends_on for task in version.spec.tasks}
            path = critical_path(upstream, newest)
            critical = {newest[name].id for name in path}
            took = (seconds(newest[n].started_at, newest[n].finished_at) for n in path)
            return Timeline(
                started_at=instance.started_at,
                finished_at=instance.finished_at,
                critical_path=path,
                critical_s=sum(filter(None, took)),
                bars=[
                    Bar.of_record(one, task_instance_id=one.id, is_critical=one.id in critical)
                    for one in tasks
                ],
            )

    return await answer(made, len(tasks))
