"""Insight over REST: trends, failures, costs, load, and runs against what is usual for them."""

from datetime import date
from typing import Any, Literal, TypeAlias, cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.operations.generated import types as made

WorkflowSortName: TypeAlias = Literal["slower", "waits", "failures", "late", "cost"]
CostByName: TypeAlias = Literal["project", "workflow", "task", "label"]

SummaryJson = made.SummaryOut
WorkflowTrendsJson = made.WorkflowTrendsPage
FailureGroupsJson = made.FailureGroupsPage
CostsJson = made.CostsPage
LoadJson = made.LoadOut
ScheduleMinutesJson = made.ScheduleMinutesOut
BaselineJson = made.BaselineOut


class InsightCalls:
    """The part of ``ShoalClient`` about what run history tells.

    ``first`` and ``last``: the days of the window, UTC, both included; None: the last 28 days that
    have results. Lists are first pages of ``limit`` items.
    """

    _connection: Connection

    def insight_summary(
        self, *, project: str | None = None, first: date | None = None, last: date | None = None
    ) -> SummaryJson:
        """Return what has run, by day and in all, beside the window before."""
        return cast(SummaryJson, self._insight("summary", project, first, last))

    def insight_workflows(
        self,
        sort: WorkflowSortName = "slower",
        *,
        project: str | None = None,
        first: date | None = None,
        last: date | None = None,
        limit: int = 50,
    ) -> WorkflowTrendsJson:
        """Return workflows beside the window before; ``sort`` says which come first."""
        found = self._insight("workflows", project, first, last, sort=sort, limit=limit)
        return cast(WorkflowTrendsJson, found)

    def insight_failures(
        self,
        *,
        project: str | None = None,
        first: date | None = None,
        last: date | None = None,
        limit: int = 50,
    ) -> FailureGroupsJson:
        """Return failures of one cause, the most first."""
        found = self._insight("failures", project, first, last, limit=limit)
        return cast(FailureGroupsJson, found)

    def insight_costs(
        self,
        by: CostByName = "workflow",
        *,
        project: str | None = None,
        first: date | None = None,
        last: date | None = None,
        limit: int = 50,
    ) -> CostsJson:
        """Return what was used, the most first."""
        return cast(CostsJson, self._insight("costs", project, first, last, by=by, limit=limit))

    def insight_load(self, *, first: date | None = None, last: date | None = None) -> LoadJson:
        """Return how full the cluster was; it is for who may see the cluster."""
        return cast(LoadJson, self._insight("load", None, first, last))

    def insight_schedule_minutes(self) -> ScheduleMinutesJson:
        """Return in which minutes schedules fire, and which of them to move."""
        return cast(ScheduleMinutesJson, self._insight("schedule-minutes", None, None, None))

    def baseline(self, instance_id: int) -> BaselineJson:
        """Return a run against what is usual for it."""
        return cast(BaselineJson, self._connection.get(f"/instances/{instance_id}/baseline"))

    def _insight(
        self, view: str, project: str | None, first: date | None, last: date | None, **more: Any
    ) -> Any:
        query = {
            "from": None if first is None else first.isoformat(),
            "to": None if last is None else last.isoformat(),
            "project": project,
            **more,
        }
        return self._connection.get(f"/insight/{view}", query)
