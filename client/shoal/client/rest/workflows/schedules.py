"""Schedules and calendars over REST."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part, workflow_path
from shoal.client.rest.types import BulkSchedulesJson, CalendarJson, PreviewJson, ScheduleJson


class ScheduleCalls:
    """The part of ``ShoalClient`` about when workflows start."""

    _connection: Connection

    def schedules(self, project: str, name: str) -> list[ScheduleJson]:
        """Return the timetables of a workflow and when they fire next."""
        path = f"{workflow_path(project, name)}/schedules"
        return cast("list[ScheduleJson]", list(self._connection.pages(path, {})))

    def all_schedules(self, project: str | None = None) -> Iterator[ScheduleJson]:
        """Yield the schedules of all workflows."""
        query = {"project": project}
        return cast("Iterator[ScheduleJson]", self._connection.pages("/schedules", query))

    def pause_schedule(self, schedule_id: int) -> ScheduleJson:
        """Have a schedule not fire until it is resumed, whatever is published."""
        path = f"/schedules/{schedule_id:d}/pause"
        return cast(ScheduleJson, self._connection.json("POST", path))

    def resume_schedule(self, schedule_id: int) -> ScheduleJson:
        """Have it fire again, from now on."""
        path = f"/schedules/{schedule_id:d}/resume"
        return cast(ScheduleJson, self._connection.json("POST", path))

    def bulk_schedules(
        self,
        type_: str,
        ids: Sequence[int] | None = None,
        *,
        project: str | None = None,
        workflow: str | None = None,
        dry_run: bool = False,
    ) -> BulkSchedulesJson:
        """Pause or resume many schedules: those with the ids, or all of a project or workflow.

        Each has a result of its own. ``dry_run``: only say which these are.
        """
        query = {"project": project, "workflow": workflow, "dry_run": dry_run or None}
        body = {"type": type_, **({} if ids is None else {"ids": list(ids)})}
        found = self._connection.json("POST", "/bulk-schedules", query, json=body)
        return cast(BulkSchedulesJson, found)

    def preview_schedule(self, schedule_id: int, n: int = 10) -> PreviewJson:
        """Return the next fire times of a schedule, with clock changes and days left out."""
        path = f"/schedules/{schedule_id:d}/preview"
        return cast(PreviewJson, self._connection.get(path, {"n": n}))

    def preview(self, cron: str, **fields: Any) -> PreviewJson:
        """Return when a schedule would fire; ``fields`` are those of a schedule, and ``n``."""
        body = {"cron": cron, **fields}
        return cast(PreviewJson, self._connection.json("POST", "/schedules/preview", json=body))

    def calendars(self, project: str) -> Iterator[CalendarJson]:
        """Yield the calendars of a project by name."""
        path = f"/projects/{part(project)}/calendars"
        return cast("Iterator[CalendarJson]", self._connection.pages(path, {}))

    def calendar(self, project: str, name: str) -> CalendarJson:
        """Return one calendar."""
        return cast(CalendarJson, self._connection.get(_calendar_path(project, name)))

    def put_calendar(
        self, project: str, name: str, days: Sequence[str], description: str = ""
    ) -> CalendarJson:
        """Make or replace a calendar; days are YYYY-MM-DD."""
        body = {"days": list(days), "description": description}
        path = _calendar_path(project, name)
        return cast(CalendarJson, self._connection.put_in(project, path, json=body))

    def delete_calendar(self, project: str, name: str) -> None:
        """Delete a calendar; refused while a schedule uses it."""
        self._connection.request("DELETE", _calendar_path(project, name))


def _calendar_path(project: str, name: str) -> str:
    return f"/projects/{part(project)}/calendars/{part(name)}"
