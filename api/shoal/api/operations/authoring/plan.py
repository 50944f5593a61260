"""What publishing would do: it is done, looked at, and taken back."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from shoal.api.operations.authoring.checks import Checked, problems_there
from shoal.api.operations.authoring.comparison import Side, compare, is_short
from shoal.api.operations.authoring.timetables import days_of, schedule_out
from shoal.api.schemas.authoring import (
    ComparisonOut,
    HangingOut,
    NamedOut,
    SchedulePlanOut,
    WorkflowPlanOut,
)
from shoal.api.schemas.schedules import ScheduleOut
from shoal.api.web.errors import TooManyRequests
from shoal.core.access.authorization import Visible
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.runs.records import StoredWorkflow
from shoal.runtime.side.process import WAIT_S, NoTurn, SideProcesses, WorkTooLarge
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound
from shoal.sql.repositories.authoring.lifecycle import Hanging
from shoal.sql.repositories.authoring.references import Referrers
from shoal.sql.repositories.definitions.workflows import PublishedVersion

COMPARISON_CPU_S = 5.0
"""Processor time of a comparison, in seconds. Beyond it the texts are not compared by lines."""

_NOTHING = Hanging(0, (), 0, 0, 0, Referrers((), 0))


@dataclass(frozen=True)
class PublicationPlan:
    """What publishing would do, as it was read; the two sides are not compared yet."""

    project: str
    name: str
    before: Side
    after: Side
    base: int  # the version that is published now; 0: none
    done: PublishedVersion
    schedules: tuple[SchedulePlanOut, ...]
    hanging: Hanging


async def plan_of(
    uow: UnitOfWork, checked: Checked, at: datetime, visible: Visible
) -> PublicationPlan:
    """Return what publishing would do. The caller rolls back.

    Other transactions wait until then, so `plan_out` compares afterwards. Raises
    InvalidDefinition, Archived.
    """
    spec = checked.require()
    if problems := await problems_there(uow, spec):
        raise InvalidDefinition([checked.locate(one) for one in problems])
    before, base, hanging = Side({}, "nothing"), 0, _NOTHING
    times: dict[int, ScheduleOut] = {}
    try:
        found = await uow.workflows.lock(spec.project, spec.name)
    except NotFound:
        pass
    else:
        base, before = found.version, await side_of(uow, found, found.version)
        hanging = await uow.lifecycle.hanging(found, visible)
        times = await _schedules(uow, found.project, found.name)
    done = await uow.workflows.publish(spec, at, source=checked.text)
    return PublicationPlan(
        project=spec.project,
        name=spec.name,
        before=before,
        after=Side(await asyncio.to_thread(spec.canonical), "your definition", checked.text),
        base=base,
        done=done,
        schedules=tuple(_changes(times, await _schedules(uow, spec.project, spec.name))),
        hanging=hanging,
    )


async def plan_out(plan: PublicationPlan, processes: SideProcesses) -> WorkflowPlanOut:
    """Return a plan as an answer, its sides compared. Call it without an open transaction.

    Raises TooManyRequests.
    """
    return WorkflowPlanOut(
        project=plan.project,
        name=plan.name,
        base=plan.base,
        version=plan.done.version.version,
        created=plan.done.created,
        digest=plan.done.version.digest,
        comparison=await compared(processes, plan.before, plan.after),
        schedules=list(plan.schedules),
        hanging=hanging_out(plan.hanging),
    )


async def side_of(uow: UnitOfWork, found: StoredWorkflow, version: int) -> Side:
    """Return a published version, to be compared. Raises NotFound."""
    spec = (await uow.workflows.version(found.id, version)).spec
    source = await uow.workflows.source(found.id, version)
    return Side(await asyncio.to_thread(spec.canonical), f"version {version}", source)


async def compared(processes: SideProcesses, before: Side, after: Side) -> ComparisonOut:
    """Return what differs. What may take long is done in a side process. Raises TooManyRequests."""
    if is_short(before, after):
        return ComparisonOut.model_validate(compare(before, after))
    try:
        found = await processes.run(object(), compare, before, after, cpu_s=COMPARISON_CPU_S)
    except WorkTooLarge:
        found = await asyncio.to_thread(compare, before, after, lines=False)
    except NoTurn as error:
        raise TooManyRequests(str(error), WAIT_S) from None
    return await asyncio.to_thread(ComparisonOut.model_validate, found)


def hanging_out(found: Hanging) -> HangingOut:
    """Return what hangs on a workflow as an answer."""
    return HangingOut(
        open_runs=found.open_count,
        open_run_ids=list(found.open_ids),
        schedules=found.schedules,
        backfills=found.backfills,
        drafts=found.drafts,
        downstream=named(found.referrers),
        hidden=found.referrers.hidden,
    )


def named(found: Referrers) -> list[NamedOut]:
    """Return the tasks that name a workflow as an answer."""
    return [
        NamedOut(
            project=one.project, workflow=one.workflow, kind=one.named.kind, task=one.named.task
        )
        for one in found.seen
    ]


async def _schedules(uow: UnitOfWork, project: str, name: str) -> dict[int, ScheduleOut]:
    found = await uow.schedules.of_workflow(project, name)
    days = await days_of(uow, found)
    return {one.id: schedule_out(one, days) for one in found}


def _changes(
    before: dict[int, ScheduleOut], after: dict[int, ScheduleOut]
) -> list[SchedulePlanOut]:
    """A schedule that goes on keeps its id."""
    found = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old is None:
            found.append(SchedulePlanOut(change="added", before=None, after=new))
        elif new is None:
            found.append(SchedulePlanOut(change="removed", before=old, after=None))
        else:
            change = "kept" if old == new else "changed"
            found.append(
                SchedulePlanOut.model_validate({"change": change, "before": old, "after": new})
            )
    return found
