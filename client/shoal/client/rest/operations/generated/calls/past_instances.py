"""What is sent for each operation about past instances.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def get_past_instance(past_instance_id: int) -> Call[types.PastInstanceDetail]:
    """Show a past instance.

    A run that has ended, with its attempts and the plan of its version.
    """
    return Call("GET", f"/past-instances/{part(str(past_instance_id))}")


def get_past_log(
    past_instance_id: int, attempt_id: int, *, offset: int | None = None, limit: int | None = None
) -> Call[types.LogOut]:
    """Read a range of the log of a past attempt.

    Text of a log that the archive of logs still has: `keep_archived_logs_days`.
    """
    return Call(
        "GET",
        f"/past-instances/{part(str(past_instance_id))}/attempts/{part(str(attempt_id))}/log",
        query={"offset": offset, "limit": limit},
    )


def list_past_instances(
    *,
    project: str | None = None,
    workflow: str | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    from_: str | date | None = None,
    to: str | date | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.PastInstancePage]:
    """List past workflow instances.

    All runs that have ended and were exported, the newest end first.

    They stay here when the database has purged them; `in_database` says whether it has. The newest
    minutes may be missing. A page may have fewer items than asked for, even none, although more
    follow: the list is over when `next` is null.
    """
    return Call(
        "GET",
        "/past-instances",
        query={
            "project": project,
            "workflow": workflow,
            "state": state,
            "from": from_,
            "to": to,
            "limit": limit,
            "cursor": cursor,
        },
    )
