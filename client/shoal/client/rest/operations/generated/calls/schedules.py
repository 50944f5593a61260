"""What is sent for each operation about schedules.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def create_bulk_schedules(
    body: types.BulkSchedulesIn,
    *,
    project: str | None = None,
    workflow: str | None = None,
    dry_run: bool | None = None,
) -> Call[types.BulkSchedulesOut]:
    """Pause or resume many schedules.

    Of each of the ids, 500 at most, or of all of a project or a workflow.

    Each is authorised by itself, and has a result of its own; one that is paused already, or is
    not, stays as it is.
    """
    return Call(
        "POST",
        "/bulk-schedules",
        query={"project": project, "workflow": workflow, "dry_run": dry_run},
        body=body,
        repeat=True,
    )


def list_schedules(
    *, project: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.SchedulePage]:
    """List all schedules.

    The schedules of all published workflows, oldest first.
    """
    return Call("GET", "/schedules", query={"project": project, "limit": limit, "cursor": cursor})


def list_workflow_schedules(
    project: str, name: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.SchedulePage]:
    """List the schedules of a workflow.

    The timetables of a workflow and when they fire next; they change with the definition.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/schedules",
        query={"limit": limit, "cursor": cursor},
    )


def pause_schedule(schedule_id: int) -> Call[types.ScheduleOut]:
    """Pause a schedule.

    It does not fire until it is resumed, even if a new version is published.
    """
    return Call("POST", f"/schedules/{part(str(schedule_id))}/pause", repeat=True)


def preview_expression(body: types.PreviewIn) -> Call[types.PreviewOut]:
    """Show when a schedule would fire.

    As for a schedule that exists; nothing is stored.
    """
    return Call("POST", "/schedules/preview", body=body, repeat=True)


def preview_schedule(schedule_id: int, *, n: int | None = None) -> Call[types.PreviewOut]:
    """Show when a schedule will fire.

    The next fire times, also if it is switched off.

    Each with what a clock change does to it; of each day that is left out the first one.
    """
    return Call("GET", f"/schedules/{part(str(schedule_id))}/preview", query={"n": n})


def resume_schedule(schedule_id: int) -> Call[types.ScheduleOut]:
    """Resume a schedule.

    It fires from now on, if its definition has it enabled; nothing is made up for.
    """
    return Call("POST", f"/schedules/{part(str(schedule_id))}/resume", repeat=True)
