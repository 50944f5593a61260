"""Purges over REST."""

from typing import Any, cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.operations.generated import types as made

PurgeJson = made.PurgeOut
StoreJson = made.StoreOut
StoresJson = made.StoresOut


class PurgeCalls:
    """The part of ``ShoalClient`` about history that is to go."""

    _connection: Connection

    def purge(
        self,
        *,
        dry_run: bool = False,
        before: str | None = None,
        project: str | None = None,
        workflow: str | None = None,
        even_if_not_exported: bool = False,
    ) -> PurgeJson:
        """Ask for a purge; the masters carry it out. ``before``: a moment, RFC 3339.

        ``even_if_not_exported``: also what the exported history does not have yet.
        """
        body: dict[str, Any] = {"dry_run": dry_run}
        if even_if_not_exported:
            body["even_if_not_exported"] = True
        given = {"before": before, "project": project, "workflow": workflow}
        body |= {name: value for name, value in given.items() if value is not None}
        return cast(PurgeJson, self._connection.json("POST", "/purges", json=body))

    def purge_state(self, purge_id: int) -> PurgeJson:
        """Return how far the masters have come."""
        return cast(PurgeJson, self._connection.get(f"/purges/{purge_id}"))

    def stores(self) -> StoresJson:
        """Return how large the history is."""
        return cast(StoresJson, self._connection.get("/stores"))
