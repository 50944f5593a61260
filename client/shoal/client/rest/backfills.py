"""Backfills over REST: one workflow for many dates."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, cast

from shoal.client.rest.connection import PAGE, Connection
from shoal.client.rest.operations.generated import types as made
from shoal.client.rest.types import CommandJson

BackfillRequestName: TypeAlias = Literal["pause", "resume", "cancel", "retry"]


PlannedJson = made.PlannedOut
PlanJson = made.PlanOut
BackfillAcceptedJson = made.BackfillAccepted
BackfillJson = made.BackfillOut
BackfillRunJson = made.BackfillRunOut


class BackfillCalls:
    """The part of ``ShoalClient`` about backfills."""

    _connection: Connection

    def plan_backfill(self, project: str, workflow: str, **fields: Any) -> PlanJson:
        """Return what a backfill would run; ``fields`` as for ``start_backfill``."""
        body = _body(project, workflow, fields)
        answer = self._connection.json("POST", "/backfills", {"dry_run": True}, json=body)
        return cast(PlanJson, answer["plan"])

    def start_backfill(
        self, project: str, workflow: str, *, idempotency_key: str | None = None, **fields: Any
    ) -> BackfillAcceptedJson:
        """Ask for a backfill; ``fields`` are those of a request, with ``first`` and ``last`` for
        from and to. What is None is left out."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        body = _body(project, workflow, fields)
        answer = self._connection.json("POST", "/backfills", json=body, headers=headers)
        return cast(BackfillAcceptedJson, answer)

    def backfill(self, backfill_id: int) -> BackfillJson:
        """Return a backfill and how far it has come."""
        return cast(BackfillJson, self._connection.get(f"/backfills/{backfill_id:d}"))

    def backfills(
        self,
        *,
        project: str | None = None,
        workflow: str | None = None,
        states: Sequence[str] = (),
        page: int = PAGE,
    ) -> Iterator[BackfillJson]:
        """Yield backfills, newest first."""
        query = {"project": project, "workflow": workflow, "state": list(states)}
        return cast("Iterator[BackfillJson]", self._connection.pages("/backfills", query, page))

    def backfill_runs(
        self, backfill_id: int, states: Sequence[str] = (), page: int = PAGE
    ) -> Iterator[BackfillRunJson]:
        """Yield the dates of a backfill in their order."""
        path = f"/backfills/{backfill_id:d}/runs"
        pages = self._connection.pages(path, {"state": list(states)}, page)
        return cast("Iterator[BackfillRunJson]", pages)

    def request_backfill(self, backfill_id: int, request: BackfillRequestName) -> CommandJson:
        """Ask for a backfill to pause, resume, be cancelled, or retry what failed."""
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        path = f"/backfills/{backfill_id:d}/{request}"
        return cast(CommandJson, self._connection.json("POST", path, headers=headers))


def _body(project: str, workflow: str, fields: dict[str, Any]) -> dict[str, Any]:
    names = {"first": "from", "last": "to"}
    given = {names.get(k, k): v for k, v in fields.items() if v is not None}
    return {"project": project, "workflow": workflow, **given}
