"""What is sent for each operation about backfills.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def create_backfill(
    body: types.BackfillIn, *, dry_run: bool | None = None, idempotency_key: str | None = None
) -> Call[types.BackfillAccepted]:
    """Run a workflow for many dates.

    Stores the request durably; a master plans and starts the backfill a moment later.

    The plan is made twice: here, to see what is wrong with it, and by the master, which counts. The
    master refuses it if the caller may not run all that it reaches then.
    """
    return Call(
        "POST",
        "/backfills",
        query={"dry_run": dry_run},
        headers={"idempotency-key": idempotency_key or str(uuid4())},
        body=body,
    )


def get_backfill(backfill_id: int) -> Call[types.BackfillOut]:
    """Show a backfill.

    A backfill and how many of its dates are in which state.
    """
    return Call("GET", f"/backfills/{part(str(backfill_id))}")


def list_backfill_runs(
    backfill_id: int,
    *,
    state: Sequence[types.BackfillRunState] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.BackfillRunPage]:
    """List the dates of a backfill.

    The dates in the order in which they start.
    """
    return Call(
        "GET",
        f"/backfills/{part(str(backfill_id))}/runs",
        query={"state": state, "limit": limit, "cursor": cursor},
    )


def list_backfills(
    *,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.BackfillState] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.BackfillPage]:
    """List backfills.

    Backfills, newest first, each with its progress.
    """
    return Call(
        "GET",
        "/backfills",
        query={
            "project": project,
            "workflow": workflow,
            "state": state,
            "limit": limit,
            "cursor": cursor,
        },
    )


def request_backfill(
    backfill_id: int,
    request: Literal["pause", "resume", "cancel", "retry"],
    *,
    idempotency_key: str | None = None,
) -> Call[types.CommandOut]:
    """Pause, resume, cancel or retry a backfill.

    Pausing starts no other date, cancelling stops what runs as well.

    A retry starts what failed or was cancelled. Each is a command: read the outcome with
    `GET /commands/{id}?wait=30`.
    """
    return Call(
        "POST",
        f"/backfills/{part(str(backfill_id))}/{part(str(request))}",
        headers={"idempotency-key": idempotency_key or str(uuid4())},
    )
