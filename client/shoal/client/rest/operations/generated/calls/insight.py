"""What is sent for each operation about insight.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def get_insight_load(
    *, from_: str | date | None = None, to: str | date | None = None
) -> Call[types.LoadOut]:
    """Show how full the cluster is.

    The hours of the week by worker group, the workers, and what the next days will need.
    """
    return Call("GET", "/insight/load", query={"from": from_, "to": to})


def get_insight_schedule_minutes() -> Call[types.ScheduleMinutesOut]:
    """Show hot minutes, and which schedules to move.

    In which minutes schedules fire, of the last 28 days, and moves that would relieve them.

    Moves are of schedules that the caller sees. The minutes, and how full they are, are of all
    projects, and so for who may see the cluster.
    """
    return Call("GET", "/insight/schedule-minutes")


def get_insight_summary(
    *,
    from_: str | date | None = None,
    to: str | date | None = None,
    project: str | None = None,
    workflow: str | None = None,
) -> Call[types.SummaryOut]:
    """Add up what has run.

    Runs and attempts of all workflows that the caller sees, by day and in all.

    The preceding window of the same length is included. A day has what ended on it, UTC.
    """
    return Call(
        "GET",
        "/insight/summary",
        query={"from": from_, "to": to, "project": project, "workflow": workflow},
    )


def get_instance_baseline(instance_id: int) -> Call[types.BaselineOut]:
    """Compare a run with what is usual for it.

    What the run and its tasks took and waited, beside earlier ones that started at such a time.

    Usual is what succeeded in the 60 days before the newest results: of the same weekday and hour
    if there were 20 or more, else of the same hour, else of the same weekday, else of any time.
    Tasks that made the run slower come first.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}/baseline")


def list_insight_costs(
    *,
    from_: str | date | None = None,
    to: str | date | None = None,
    project: str | None = None,
    workflow: str | None = None,
    by: types.CostBy | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.CostsPage]:
    """Add up what was used.

    Processor time, memory and slots of the attempts that ended in the window; the most first.

    `label`: by each key and value of the labels of runs; a run counts for all that it has.
    """
    return Call(
        "GET",
        "/insight/costs",
        query={
            "from": from_,
            "to": to,
            "project": project,
            "workflow": workflow,
            "by": by,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_insight_failures(
    *,
    from_: str | date | None = None,
    to: str | date | None = None,
    project: str | None = None,
    workflow: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.FailureGroupsPage]:
    """List what fails for the same cause.

    Attempts that failed in the window, by the fingerprint of their error line, most first.

    One group may have tasks of several workflows: of those that the caller sees.
    """
    return Call(
        "GET",
        "/insight/failures",
        query={
            "from": from_,
            "to": to,
            "project": project,
            "workflow": workflow,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_insight_rollup_rows(
    *,
    job: str | None = None,
    day: str | date | None = None,
    project: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.RollupRowsPage]:
    """List the rows of a result.

    The rows that one job has found about one day, workflow by workflow, of visible projects.

    Rows that are of no project come first, for who sees the cluster. A result that there is not is
    empty. Of a move of a schedule `place`, `highest_before` and `highest_after` tell of the
    schedules of all projects: they are null for who does not see the cluster.
    """
    return Call(
        "GET",
        "/insight/rollup-rows",
        query={"job": job, "day": day, "project": project, "limit": limit, "cursor": cursor},
    )


def list_insight_rollups(
    *, job: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.RollupPage]:
    """List which results of jobs there are.

    The newest day first. How many rows there are of all projects is for who sees the cluster.
    """
    return Call("GET", "/insight/rollups", query={"job": job, "limit": limit, "cursor": cursor})


def list_insight_tasks(
    *,
    from_: str | date | None = None,
    to: str | date | None = None,
    project: str | None = None,
    workflow: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.TaskTrendsPage]:
    """List how the tasks of a workflow have changed.

    Tasks of one workflow, which `project` and `workflow` name, in the window and the one before.

    What was busy for longest in the window comes first. A workflow that the caller may not see has
    no tasks, as one that there is not.
    """
    return Call(
        "GET",
        "/insight/tasks",
        query={
            "from": from_,
            "to": to,
            "project": project,
            "workflow": workflow,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_insight_workflows(
    *,
    from_: str | date | None = None,
    to: str | date | None = None,
    project: str | None = None,
    workflow: str | None = None,
    sort: types.WorkflowSort | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.WorkflowTrendsPage]:
    """List how workflows have changed.

    Workflows with runs that ended in the window or the one before, side by side.

    Counts, means and highest values are exact. Percentiles over several days are means of the
    days' percentiles, weighted by how many values each day had.
    """
    return Call(
        "GET",
        "/insight/workflows",
        query={
            "from": from_,
            "to": to,
            "project": project,
            "workflow": workflow,
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
        },
    )
