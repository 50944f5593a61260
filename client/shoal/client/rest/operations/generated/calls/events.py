"""What is sent for each operation about events.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, StreamCall

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def follow_events(
    *,
    project: str | None = None,
    instance_id: int | None = None,
    kind: Sequence[types.EventKind] | None = None,
    about: Sequence[str] | None = None,
    coalesce: bool | None = None,
    last_event_id: str | None = None,
) -> StreamCall:
    """Follow what happens.

    What happens, as it is committed.

    `reset` says that some events are no longer kept: read the present state anew. Events are
    `instance.state`, `instance.overdue`, `instance.late`, `instance.labels`, `task.state`,
    `task.overdue`, `task.detail` (something about an attempt but its state), `backfill.state`,
    `schedule.state`, `alert.state`, `alert.delivery`, `alert.condition` (what a rule watches) and
    `workflow.published`, `workflow.renamed`, `workflow.archived`, `workflow.unarchived` and
    `workflow.deleted`. Overdue is beyond the timeout, late beyond the deadline.

    Every event comes once and in order. A client that reads too slowly is disconnected
    and comes back with Last-Event-ID, as browsers do by themselves. One stream can be about many
    things (`about`), some kinds of events (`kind`), and leave out what is outdated (`coalesce`).
    """
    return StreamCall(
        "/events",
        query={
            "project": project,
            "instance_id": instance_id,
            "kind": kind,
            "about": about,
            "coalesce": coalesce,
        },
        all_headers={"last-event-id": last_event_id},
    )


def list_history(
    *,
    project: str | None = None,
    workflow: str | None = None,
    kind: Sequence[types.HistoryKind] | None = None,
    instance_id: int | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.HappenedPage]:
    """List what has happened.

    Events, commands and takeovers, the latest first.

    A page looks through 5,000 of each, so it may be short or empty although more follow: the list
    is over when `next` is null. Takeovers of all partitions are for who may see the cluster. Events
    are kept for `keep_events_days`, commands for `keep_commands_days` and as long as their run, of
    takeovers the newest 10,000.
    """
    return Call(
        "GET",
        "/history",
        query={
            "project": project,
            "workflow": workflow,
            "kind": kind,
            "instance_id": instance_id,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )
