"""What is sent for each operation about task instances.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def get_task_instance(task_instance_id: int) -> Call[types.TaskDetail]:
    """Show a task instance.

    One attempt of one task, with its outputs.
    """
    return Call("GET", f"/task-instances/{part(str(task_instance_id))}")


def list_task_instances(
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
    state: Sequence[types.TaskState] | None = None,
    worker: str | None = None,
    instance_id: int | None = None,
    task: str | None = None,
    type_: str | None = None,
    worker_group: str | None = None,
    environment: str | None = None,
    fingerprint: str | None = None,
    sort: Literal[
        "created_at",
        "-created_at",
        "started_at",
        "-started_at",
        "finished_at",
        "-finished_at",
        "duration",
        "-duration",
    ]
    | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.TaskPage]:
    """List task instances.

    Attempts of all instances that fulfil all filters, newest first unless `sort` says otherwise.

    Looks that found nothing (RESCHEDULED) are listed only if they are asked for: of a long wait
    there may be thousands.

    State, worker and instance have indices; the rest is looked for among what these leave. A page
    may have fewer items than asked for, even none, although more follow: the list is over when
    `next` is null.
    """
    return Call(
        "GET",
        "/task-instances",
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
            "worker": worker,
            "instance_id": instance_id,
            "task": task,
            "type": type_,
            "worker_group": worker_group,
            "environment": environment,
            "fingerprint": fingerprint,
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
        },
    )
