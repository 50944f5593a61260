"""Logs of task instances: a range, the whole file, or live."""

import json
import re
from collections.abc import AsyncGenerator
from typing import Annotated, NamedTuple

import structlog
from fastapi import Header, Query
from fastapi.responses import Response, StreamingResponse

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.logs import MOST_BYTES, LogProxy, Utf8, text_of
from shoal.api.routes.runs.tasks import TaskInstanceId
from shoal.api.schemas.runs.instances import LogOut
from shoal.api.services import LogsDep, StoreDep, StreamsDep
from shoal.api.web.errors import RangeNotSatisfiable
from shoal.api.web.middleware import StreamBroken
from shoal.api.web.paging import MAX_ID
from shoal.api.web.problems import documented
from shoal.api.web.sse import EventStream, encode, resumed_at
from shoal.api.web.store import Store
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.errors import ShoalError
from shoal.core.runs.records import TaskInstance

log = structlog.get_logger()

router = strict_router("logs")


@router.get(
    "/task-instances/{task_instance_id}/log",
    summary="Read a range of a log",
    responses=documented(404, 502),
)
@needs(Permission.PROJECT_READ)
async def get_log(
    store: StoreDep,
    logs: LogsDep,
    task_instance_id: TaskInstanceId,
    offset: Annotated[
        int, Query(ge=-MAX_ID, le=MAX_ID, description="First byte; negative: from the end.")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_BYTES, description="Bytes, at most.")] = 64 * 1024,
) -> LogOut:
    """Text of a log. Offsets count bytes; a range never cuts a character of the next one."""
    task = await _task(store, task_instance_id)
    part = await logs.view(task, offset, limit)
    text, start, end = text_of(part, from_end=offset < 0)
    return LogOut(data=text, offset=start, next_offset=end, size=part.size, finished=part.finished)


_TEXT = {"text/plain": {"schema": {"type": "string", "format": "binary"}, "example": "ready\n"}}


@router.get(
    "/task-instances/{task_instance_id}/log/raw",
    summary="Download a log",
    response_class=StreamingResponse,
    responses={
        200: {"content": _TEXT, "description": "The whole log as it is now."},
        206: {"content": _TEXT, "description": "The bytes that `Range` asks for."},
        **documented(404, 416, 502),
    },
)
@needs(Permission.PROJECT_READ)
async def download_log(
    store: StoreDep,
    logs: LogsDep,
    task_instance_id: TaskInstanceId,
    range_: Annotated[
        str | None,
        Header(alias="Range", description="One range of bytes.", examples=["bytes=0-1023"]),
    ] = None,
) -> Response:
    """The bytes of a log, unchanged. What is written after the request came is left out."""
    task = await _task(store, task_instance_id)
    size = (await logs.view(task, 0, 1)).size
    span = _span(range_, size)
    name = f"{task.workflow}-{task.workflow_instance_id}-{task.task}-{task.attempt}.log"
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(span.end - span.start),
    }
    if span.is_part:
        headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{size}"
    return StreamingResponse(
        _download(logs, task, span),
        status_code=206 if span.is_part else 200,
        headers=headers,
        media_type="text/plain; charset=utf-8",
    )


class _Span(NamedTuple):
    """Bytes from ``start`` up to ``end`` (exclusive)."""

    start: int
    end: int
    is_part: bool


_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def _span(header: str | None, size: int) -> _Span:
    """RFC 9110: what cannot be understood, or are several ranges, is as good as no header."""
    match = _RANGE.fullmatch((header or "").replace(" ", ""))
    if match is None or not any(match.groups()):
        return _Span(0, size, False)
    first, last = match.groups()
    if first and last and int(first) > int(last):
        return _Span(0, size, False)
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= end:
        raise RangeNotSatisfiable(
            f"the log has {size} bytes", headers={"Content-Range": f"bytes */{size}"}
        )
    return _Span(start, end, True)


async def _download(logs: LogProxy, task: TaskInstance, span: _Span) -> AsyncGenerator[bytes, None]:
    if span.start == span.end:
        return
    try:
        async for data in logs.download(task, span.start, span.end):
            yield data
    except ShoalError as error:
        log.warning("log download broken off", task_instance=task.id, error=str(error))
        raise StreamBroken from error


@router.get(
    "/task-instances/{task_instance_id}/log/follow",
    summary="Follow a log",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events; the id of each is the byte offset to resume at.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": 'id: 6\nevent: log\ndata: {"offset": 0, "data": "ready\\n"}\n\n'
                    "event: end\ndata: {}\n\n",
                }
            },
        },
        **documented(404, 429, 502),
    },
)
@needs(Permission.PROJECT_READ)
async def follow_log(
    store: StoreDep,
    streams: StreamsDep,
    logs: LogsDep,
    caller: Calling,
    task_instance_id: TaskInstanceId,
    offset: Annotated[int, Query(ge=0, le=MAX_ID, description="First byte.")] = 0,
    last_event_id: Annotated[
        str | None, Header(description="Resume at this byte offset.", examples=["6"])
    ] = None,
) -> EventStream:
    """Events `log` with text as it is written, and `end` when the log is complete.

    Waits for an attempt that has not started. If the worker goes away, an event `problem` says
    so and the stream ends; come back with Last-Event-ID.
    """
    start = offset if last_event_id is None else resumed_at(last_event_id, "a byte offset")
    await logs.check(await _task(store, task_instance_id))
    events = _follow(logs, task_instance_id, start)
    home = await caller.homes.of(Thing.TASK_INSTANCE, task_instance_id)
    rights = caller.while_reading(home)
    return await streams.open(events, rights, caller.name)


async def _follow(logs: LogProxy, task_id: int, start: int) -> AsyncGenerator[bytes, None]:
    decoder, position = Utf8(), start  # position: of the first byte that has not gone out
    try:
        async for offset, data in logs.follow(task_id, start):
            text = decoder.feed(data)
            end = offset + len(data) - decoder.pending
            if text:
                yield _log_event(position, text, end)
                position = end
    except ShoalError as error:
        log.info("log stream ended early", task_instance=task_id, error=str(error))
        yield encode("problem", json.dumps({"detail": str(error)}))
        return
    if rest := decoder.finish():
        yield _log_event(position, rest, position + len(rest.encode()))
    yield encode("end", "{}")


def _log_event(offset: int, text: str, end: int) -> bytes:
    return encode("log", json.dumps({"offset": offset, "data": text}, ensure_ascii=False), str(end))


async def _task(store: Store, task_instance_id: int) -> TaskInstance:
    async with store.unit_of_work(read_only=True) as uow:
        return await uow.tasks.get(task_instance_id)
