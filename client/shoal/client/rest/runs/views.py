"""Views over REST: what happens around now, grids and days of workflows, the history."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, cast

from shoal.client.rest.connection import PAGE, Connection
from shoal.client.rest.paths import workflow_path
from shoal.client.rest.types import DayJson, GridJson, HappenedJson, TodayJson

GridSort = Literal["-logical_time", "-created_at"]


class ViewCalls:
    """The part of ``ShoalClient`` about what one looks at of many runs together."""

    _connection: Connection

    def today(
        self,
        project: str | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> TodayJson:
        """Return what happens around now by workflow, what is late and what failed first.

        One page; ``next`` of it is the ``cursor`` of the next one.
        """
        query = {"project": project, **_period(since, until), "limit": limit, "cursor": cursor}
        return cast(TodayJson, self._connection.get("/today", query))

    def grid(
        self,
        project: str,
        name: str,
        *,
        sort: GridSort | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> GridJson:
        """Return the runs of a workflow with the states of their tasks.

        One page, with columns of its own; ``next`` of it is the ``cursor`` of the next one.
        """
        path = f"{workflow_path(project, name)}/grid"
        query = {"sort": sort, "limit": limit, "cursor": cursor}
        return cast(GridJson, self._connection.get(path, query))

    def workflow_days(
        self,
        project: str,
        name: str,
        *,
        first: str | None = None,
        days: int = 366,
        timezone: str | None = None,
    ) -> Iterator[DayJson]:
        """Yield so many days of a workflow from ``first`` on, YYYY-MM-DD; None: until today."""
        path = f"{workflow_path(project, name)}/days"
        query = {"first": first, "timezone": timezone}
        return cast("Iterator[DayJson]", self._connection.pages(path, query, days))

    def history(
        self,
        *,
        kinds: Sequence[str] = (),
        project: str | None = None,
        workflow: str | None = None,
        instance_id: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        page: int = PAGE,
    ) -> Iterator[HappenedJson]:
        """Yield events, commands and takeovers, the latest first."""
        query = {
            "kind": list(kinds),
            "project": project,
            "workflow": workflow,
            "instance_id": instance_id,
            **_period(since, until),
        }
        return cast("Iterator[HappenedJson]", self._connection.pages("/history", query, page))


def _period(since: datetime | None, until: datetime | None) -> dict[str, Any]:
    return {
        "since": since.isoformat() if since else None,
        "until": until.isoformat() if until else None,
    }
