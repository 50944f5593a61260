"""What happens now, what has happened, and a workflow's tasks by its runs."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import workflow_path
from shoal.client.rest.types import GridJson, HappenedJson, LaneJson


class OverviewCalls:
    """Views of many runs."""

    _connection: Connection

    def today(
        self, project: str | None = None, since: datetime | None = None
    ) -> Iterator[LaneJson]:
        """Yield workflows with runs since then, 18 hours by default: late and failed ones first."""
        query = {"project": project, "since": since.isoformat() if since else None}
        return cast("Iterator[LaneJson]", self._connection.pages("/today", query))

    def history(
        self,
        kinds: Sequence[str] = (),
        project: str | None = None,
        workflow: str | None = None,
        instance_id: int | None = None,
    ) -> Iterator[HappenedJson]:
        """Yield events, commands and takeovers, the latest first."""
        query = {
            "kind": list(kinds) or None,
            "project": project,
            "workflow": workflow,
            "instance_id": instance_id,
        }
        return cast("Iterator[HappenedJson]", self._connection.pages("/history", query))

    def grid(self, project: str, workflow: str, runs: int = 50) -> GridJson:
        """Return the tasks of a workflow by its last runs, 100 at most."""
        path = f"{workflow_path(project, workflow)}/grid"
        return cast(GridJson, self._connection.get(path, {"limit": runs}))
