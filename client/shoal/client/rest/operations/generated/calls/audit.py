"""What is sent for each operation about audit.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def get_audit_head() -> Call[types.AuditHeadOut]:
    """Show the end of the audit's chain.

    Note it somewhere else: it proves later what the audit was.
    """
    return Call("GET", "/audit-head")


def get_audit_links(
    *, after: int | None = None, limit: int | None = None
) -> Call[Sequence[types.AuditLinkOut]]:
    """Export the audit.

    Entries with their hashes, the oldest first: enough to verify them without trusting us.
    """
    return Call("GET", "/audit-chain", query={"after": after, "limit": limit})


def list_audit(
    *,
    principal: str | None = None,
    action: str | None = None,
    outcome: types.Outcome | None = None,
    request: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    project: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.AuditEntryPage]:
    """List who did what.

    Everything that was changed or refused, the newest first.
    """
    return Call(
        "GET",
        "/audit",
        query={
            "principal": principal,
            "action": action,
            "outcome": outcome,
            "request": request,
            "since": since,
            "until": until,
            "project": project,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_project_audit(
    project: str,
    *,
    principal: str | None = None,
    action: str | None = None,
    outcome: types.Outcome | None = None,
    request: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.AuditEntryPage]:
    """List who did what in a project.

    What was changed or refused in one project, the newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/audit",
        query={
            "principal": principal,
            "action": action,
            "outcome": outcome,
            "request": request,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def prune_audit(body: types.AuditPruneIn) -> Call[types.AuditPrunedOut]:
    """Remove old entries of the audit.

    Removes some thousand of the oldest entries; repeat it until `removed` is 0.

    An entry says up to where, so that the rest can still be verified. Entries of the last day stay.
    """
    return Call("POST", "/audit-prunes", body=body, repeat=True)
