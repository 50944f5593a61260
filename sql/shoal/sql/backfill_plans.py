"""From a backfill's request to its plan: what the database knows, given to the pure core."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches

from sqlalchemy import Text, cast, select

from shoal.core.access.grants import Grant
from shoal.core.backfill.plan import (
    BackfillPlan,
    BackfillTarget,
    Past,
    by_of,
    dates_downstream,
    dates_of,
    fires_at,
    plan,
)
from shoal.core.backfill.request import BackfillRefused, BackfillRequest, By, Downstream
from shoal.core.backfill.upstream import DEPENDENT, WorkflowKey, needs_of
from shoal.core.definition.parameters import launch_problems
from shoal.core.runs.records import StoredSchedule, WorkflowVersion
from shoal.core.schedule.fire_times import Timetable
from shoal.sql.errors import Archived, NotFound
from shoal.sql.schema import tables
from shoal.sql.schema.tables import workflow, workflow_version
from shoal.sql.unit_of_work import UnitOfWork


@dataclass(frozen=True)
class Scheduled:
    """A workflow of a backfill and its enabled schedules, each with its timetable."""

    target: BackfillTarget
    schedules: tuple[StoredSchedule, ...]

    def schedule_at(self, moment: datetime) -> StoredSchedule | None:
        """Return the first schedule that fires at ``moment``."""
        pairs = zip(self.schedules, self.target.timetables, strict=True)
        return next((one for one, timetable in pairs if fires_at(timetable, moment)), None)


async def plan_of(uow: UnitOfWork, request: BackfillRequest) -> BackfillPlan:
    """Return what a backfill would run, as of now.

    Workflows of other projects are downstream as far as their tasks may see the runs that they look
    for. Raises NotFound for a workflow or version that is not there, BackfillRefused for everything
    else that cannot be carried out; a plan may still have nothing to run.
    """
    version = await uow.workflows.version_by_name(
        request.project, request.workflow, request.version
    )
    if version.archived_at is not None:
        raise BackfillRefused("workflow", str(Archived(version.project, version.name)))
    found = await scheduled(uow, version)
    root = found.target
    _check_tasks(request, version)
    _check_parameters(request, found)
    dates: dict[int, Sequence[datetime]] = {root.workflow_id: dates_of(request, root)}
    targets = [root]
    for key, depth in (await _downstream(uow, request)).items():
        other = await uow.workflows.version_by_name(*key)
        target = replace((await scheduled(uow, other)).target, depth=depth)
        dates[target.workflow_id] = dates_downstream(request, root, dates[root.workflow_id], target)
        targets.append(target)
    history: dict[tuple[int, datetime], Past] = {}
    for target in targets:
        selection = request.selection if target is root else None
        times = dates[target.workflow_id]
        history.update(await uow.backfills.past(target.workflow_id, times, selection))
    return plan(request, targets, dates, history)


async def workflows_of(
    uow: UnitOfWork, request: BackfillRequest, root_id: int, ids: Collection[int]
) -> dict[int, Scheduled]:
    """Return the workflows of a backfill as they are now, by id; what is deleted is missing."""
    found = {}
    for workflow_id in ids:
        number = request.version if workflow_id == root_id else None
        with suppress(NotFound):
            version = await uow.workflows.version(workflow_id, number)
            found[workflow_id] = await scheduled(uow, version)
    return found


async def scheduled(uow: UnitOfWork, version: WorkflowVersion) -> Scheduled:
    """Return a workflow with its enabled schedules, oldest first."""
    stored = await uow.schedules.of_workflow(version.project, version.name)
    enabled = tuple(one for one in stored if one.enabled)
    named = {(one.project, one.calendar) for one in enabled if one.calendar is not None}
    days = await uow.calendars.days(named)
    timetables = tuple(
        Timetable.of(one, days.get((one.project, one.calendar or ""), ())) for one in enabled
    )
    return Scheduled(BackfillTarget(version.workflow_id, version.spec, timetables), enabled)


def _check_tasks(request: BackfillRequest, version: WorkflowVersion) -> None:
    names = [task.name for task in version.spec.tasks]
    if request.selection is None:
        return
    for task in request.selection.unknown(names):
        close = get_close_matches(task, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise BackfillRefused("tasks", f"the workflow has no task {task!r}{hint}")


def _check_parameters(request: BackfillRequest, found: Scheduled) -> None:
    """Refuse what no date could start with; what a schedule gives counts as given."""
    given = dict(request.parameters)
    if not request.dates and by_of(request, found.target) is By.SCHEDULE:
        for schedule in found.schedules:
            given = {**schedule.parameters, **given}
    problems = launch_problems(found.target.spec.parameters, given, data=False)
    for name, problem in problems.items():
        raise BackfillRefused(f"parameters.{name}", problem)


async def _downstream(uow: UnitOfWork, request: BackfillRequest) -> dict[WorkflowKey, int]:
    """Return the workflows downstream, the nearest first, each with its distance."""
    if request.downstream is Downstream.NONE:
        return {}
    looked_for = await _dependents(uow)
    start = (request.project, request.workflow)
    found: dict[WorkflowKey, int] = {start: 0}
    to_visit = [start]
    for key in to_visit:  # grows while it is walked through
        if request.downstream is Downstream.DIRECT and key != start:
            break
        for other in looked_for.get(key, ()):
            if other not in found:
                found[other] = found[key] + 1
                to_visit.append(other)
    del found[start]
    return found


async def _dependents(uow: UnitOfWork) -> Mapping[WorkflowKey, list[WorkflowKey]]:
    """Return which workflows wait for runs of which, by the newest definitions."""
    query = (
        select(tables.project.c.name.label("project"), workflow.c.name)
        .join_from(workflow, tables.project)
        .join(
            workflow_version,
            (workflow_version.c.workflow_id == workflow.c.id)
            & (workflow_version.c.version == workflow.c.version),
        )
        .where(
            workflow.c.deleted_at.is_(None),
            # As text: the column holds JSON that only Python reads.
            cast(workflow_version.c.spec, Text).contains(f'"{DEPENDENT}"'),
        )
        .order_by(tables.project.c.name, workflow.c.name)
    )
    found: defaultdict[WorkflowKey, list[WorkflowKey]] = defaultdict(list)
    for row in await uow.connection.rows(query):
        version = await uow.workflows.version_by_name(row.project, row.name)
        for key in {need.key for need in needs_of(version.spec)}:
            found[key].append((row.project, row.name))
    pairs = {(key[0], project) for key, others in found.items() for project, _ in others}
    given = await uow.grants.given(pairs, Grant.SEE)
    return {
        key: [other for other in others if (key[0], other[0]) in given]
        for key, others in found.items()
    }
