"""What is sent for each operation about logs.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, StreamCall, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def download_log(task_instance_id: int, *, range_: str | None = None) -> StreamCall:
    """Download a log.

    The bytes of a log, unchanged. What is written after the request came is left out.
    """
    return StreamCall(
        f"/task-instances/{part(str(task_instance_id))}/log/raw", all_headers={"Range": range_}
    )


def follow_log(
    task_instance_id: int, *, offset: int | None = None, last_event_id: str | None = None
) -> StreamCall:
    """Follow a log.

    Events `log` with text as it is written, and `end` when the log is complete.

    Waits for an attempt that has not started. If the worker goes away, an event `problem` says
    so and the stream ends; come back with Last-Event-ID.
    """
    return StreamCall(
        f"/task-instances/{part(str(task_instance_id))}/log/follow",
        query={"offset": offset},
        all_headers={"last-event-id": last_event_id},
    )


def get_log(
    task_instance_id: int, *, offset: int | None = None, limit: int | None = None
) -> Call[types.LogOut]:
    """Read a range of a log.

    Text of a log. Offsets count bytes; a range never cuts a character of the next one.
    """
    return Call(
        "GET",
        f"/task-instances/{part(str(task_instance_id))}/log",
        query={"offset": offset, "limit": limit},
    )


def search_log(
    task_instance_id: int,
    *,
    text: str | None = None,
    regex: str | None = None,
    ignore_case: bool | None = None,
    context: int | None = None,
    offset: int | None = None,
    limit: int | None = None,
) -> Call[types.LogHits]:
    """Search a log.

    Lines of the log of one attempt, with the byte offset of each.

    One request reads 16 MiB or 5 s at most; `next_offset` is where to go on, also of a log that
    still grows. It is null at the end of a finished one.
    """
    return Call(
        "GET",
        f"/task-instances/{part(str(task_instance_id))}/log/search",
        query={
            "text": text,
            "regex": regex,
            "ignore_case": ignore_case,
            "context": context,
            "offset": offset,
            "limit": limit,
        },
    )


def search_logs(
    instance_id: int,
    *,
    text: str | None = None,
    regex: str | None = None,
    ignore_case: bool | None = None,
    context: int | None = None,
    every: bool | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.InstanceHits]:
    """Search the logs of an instance.

    Lines of the logs of an instance's tasks, in the order of its definition.

    One request reads 16 MiB, 200 logs or 5 s at most; `next` continues. A log that cannot be read
    is named with the reason, and does not keep the others.
    """
    return Call(
        "GET",
        f"/instances/{part(str(instance_id))}/log-search",
        query={
            "text": text,
            "regex": regex,
            "ignore_case": ignore_case,
            "context": context,
            "every": every,
            "limit": limit,
            "cursor": cursor,
        },
    )
