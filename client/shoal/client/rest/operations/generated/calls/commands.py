"""What is sent for each operation about commands.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def create_bulk_commands(
    body: types.BulkIn,
    *,
    project: str | None = None,
    label: Sequence[str] | None = None,
    workflow: str | None = None,
    started_since: str | datetime | None = None,
    started_until: str | datetime | None = None,
    finished_since: str | datetime | None = None,
    finished_until: str | datetime | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    schedule_id: int | None = None,
    backfill_id: int | None = None,
    parent_id: int | None = None,
    rerun_of: int | None = None,
    version: int | None = None,
    priority: Sequence[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]] | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    logical_since: str | datetime | None = None,
    logical_until: str | datetime | None = None,
    late: bool | None = None,
    dry_run: bool | None = None,
    idempotency_key: str | None = None,
) -> Call[types.BulkOut]:
    """Ask the same of many runs or tasks.

    Stores a command for each of the ids, 500 at most, or of what the filters mean.

    The filters of `GET /instances` apply; they need the `digest` of a preview (`dry_run`),
    and if they mean others by now nothing is done (412). Each is authorised by itself and has a
    result of its own: what one may not touch does not keep the others. The same idempotency key
    stores no second command for any of them.
    """
    return Call(
        "POST",
        "/bulk-commands",
        query={
            "project": project,
            "label": label,
            "workflow": workflow,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
            "state": state,
            "schedule_id": schedule_id,
            "backfill_id": backfill_id,
            "parent_id": parent_id,
            "rerun_of": rerun_of,
            "version": version,
            "priority": priority,
            "since": since,
            "until": until,
            "logical_since": logical_since,
            "logical_until": logical_until,
            "late": late,
            "dry_run": dry_run,
        },
        headers={"idempotency-key": idempotency_key or str(uuid4())},
        body=body,
    )


def create_command(
    body: types.CommandIn, *, idempotency_key: str | None = None
) -> Call[types.CommandOut]:
    """Start a workflow, or change what runs.

    Stores the command durably; a master carries it out a moment later.

    Read the outcome with `GET /commands/{id}?wait=30`.
    """
    return Call(
        "POST", "/commands", headers={"idempotency-key": idempotency_key or str(uuid4())}, body=body
    )


def get_command(command_id: int, *, wait: float | None = None) -> Call[types.CommandOut]:
    """Show a command.

    A command and its outcome. With `wait` it answers as soon as the state is not PENDING.
    """
    return Call("GET", f"/commands/{part(str(command_id))}", query={"wait": wait})
