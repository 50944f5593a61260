"""The live event stream."""

import json
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Set
from contextlib import aclosing
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated

from fastapi import Header, Query
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.feed import Feed
from shoal.api.schemas.views.history import with_said
from shoal.api.services import FeedDep, StoreDep, StreamsDep
from shoal.api.web.paging import MAX_ID
from shoal.api.web.problems import documented
from shoal.api.web.sse import EventStream, comment, encode, resumed_at
from shoal.api.web.store import Store
from shoal.core.access.permissions import Permission
from shoal.core.runs.records import ChangeEvent, EventKind

router = strict_router("events")

REPLAY_AT_ONCE = 500  # events read with one query
MOST_ABOUT = 100  # things that one stream is about
About = Annotated[
    str,
    StringConstraints(
        max_length=220, pattern=r"^(project:[^/]+|workflow:[^/]+/[^/]+|instance:[1-9][0-9]{0,18})$"
    ),
]
SOUGHT_AT_ONCE = 5_000  # ids that one query looks through for those of a project


@router.get(
    "/events",
    summary="Follow what happens",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events; the id of each is the event's id.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": "id: 204\nevent: instance.state\n"
                    'data: {"id": 204, "at": "2026-11-21T06:00:00Z", "kind": "instance.state", '
                    '"project": "flights", "instance_id": 17, "task_instance_id": null, '
                    '"data": {"workflow": "daily", "version": 4, "state": "RUNNING"}}\n\n',
                }
            },
        },
        **documented(429),
    },
)
@needs(Permission.SIGNED_IN)
async def follow_events(
    store: StoreDep,
    feed: FeedDep,
    streams: StreamsDep,
    caller: Calling,
    project: Annotated[str | None, Query(description="Only for this project.")] = None,
    instance_id: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="Only for this instance.")
    ] = None,
    kind: Annotated[
        list[EventKind] | None,
        Query(description="Only of one of these; repeatable.", examples=[["instance.state"]]),
    ] = None,
    about: Annotated[
        list[About] | None,
        Query(
            max_length=MOST_ABOUT,
            description="Only of one of these things: `project:NAME`, `workflow:PROJECT/NAME`, "
            "`instance:ID`; repeatable.",
            examples=[["instance:17", "workflow:flights/daily"]],
        ),
    ] = None,
    coalesce: Annotated[
        bool,
        Query(
            description="Of what a reader has not kept up with, only the newest event of each kind "
            "about an attempt or an instance: less to read, and nothing of the present state lost."
        ),
    ] = False,
    last_event_id: Annotated[
        str | None, Header(description="Resume behind this event.", examples=["204"])
    ] = None,
) -> EventStream:
    """What happens, as it is committed.

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
    after = None if last_event_id is None else resumed_at(last_event_id, "an event id")
    visible = await caller.visible_names(store)
    wants = _Wants(project, instance_id, visible, frozenset(kind or ()), frozenset(about or ()))
    stream = _events(store, feed, wants, after, _subject if coalesce else attrgetter("id"))
    await anext(stream)  # subscribed: nothing that happens from now on is missed
    rights = caller.while_seeing_the_same()  # else the client comes back, with the new rights
    return await streams.open(stream, rights, caller.name)


@dataclass(frozen=True)
class _Wants:
    """Which events a stream is about."""

    project: str | None
    instance_id: int | None
    visible: Set[str] | None
    kinds: Set[str] = frozenset()  # empty: all
    about: Set[str] = frozenset()  # empty: anything

    def __call__(self, event: ChangeEvent) -> bool:
        return (
            (self.project is None or event.project == self.project)
            and (self.instance_id is None or event.workflow_instance_id == self.instance_id)
            and (self.visible is None or event.project in self.visible)
            and (not self.kinds or event.kind in self.kinds)
            and (not self.about or not self.about.isdisjoint(_things(event)))
        )


def _things(event: ChangeEvent) -> Iterator[str]:
    """Yield what ``about`` may call the things of an event."""
    yield f"project:{event.project}"
    if "workflow" in event.data:
        yield f"workflow:{event.project}/{event.data['workflow']}"
    if event.workflow_instance_id is not None:
        yield f"instance:{event.workflow_instance_id}"


def _subject(event: ChangeEvent) -> Hashable:
    """Return what a newer event has to have in common to make this one outdated."""
    if event.workflow_instance_id is None:
        return event.id
    return event.kind, event.workflow_instance_id, event.task_instance_id


async def _events(
    store: Store,
    feed: Feed,
    wants: _Wants,
    after: int | None,
    key: Callable[[ChangeEvent], Hashable],
) -> AsyncGenerator[bytes, None]:
    """Yield nothing once, when subscribed; then what was missed, then what happens."""
    async with feed.subscribe(wants, key) as subscription:
        yield b""
        if after is not None:
            if (start := await _history_gone(store, after, subscription.position)) is not None:
                yield _encoded(
                    ChangeEvent(start, store.clock(), "reset", "", None, None, {"after": start})
                )
                after = start
            async with aclosing(_missed(store, wants, after, subscription.position, key)) as missed:
                async for event in missed:
                    yield _encoded(event)
        async for events in subscription.pieces():
            yield b"".join(feed.texts.of(event, _encoded) for event in events)
        if subscription.too_slow:
            yield comment("too many unread events; connect again with Last-Event-ID")


async def _history_gone(store: Store, after: int, newest: int) -> int | None:
    """Return behind which event the history goes on if some behind ``after`` may be missing.

    None: nothing is. Old events are purged; an id beyond the newest is of another database.
    """
    if after > newest:
        return newest
    async with store.unit_of_work(read_only=True) as uow:
        oldest = await uow.events.oldest_id()
    kept_behind = newest if oldest is None else oldest - 1
    return kept_behind if 0 < after < kept_behind else None


async def _missed(
    store: Store, wants: _Wants, after: int, until: int, key: Callable[[ChangeEvent], Hashable]
) -> AsyncGenerator[ChangeEvent, None]:
    """Yield the events behind ``after`` up to ``until``, some at a time.

    Those of an instance have an index; those of a project are looked for in one part of the
    history after the other.
    """
    project, instance_id = wants.project, wants.instance_id
    part = SOUGHT_AT_ONCE if project is not None and instance_id is None else until
    while after < until:
        end = min(after + part, until)
        async with store.unit_of_work(read_only=True) as uow:
            some = await uow.events.after(after, REPLAY_AT_ONCE, instance_id, project, end)
        newest = {key(event): event.id for event in some}
        for event in some:
            if newest[key(event)] == event.id and wants(event):
                yield event
        after = some[-1].id if len(some) == REPLAY_AT_ONCE else end


def _encoded(event: ChangeEvent) -> bytes:
    content = {
        "id": event.id,
        "at": event.at.isoformat().replace("+00:00", "Z"),
        "kind": event.kind,
        "project": event.project,
        "instance_id": event.workflow_instance_id,
        "task_instance_id": event.task_instance_id,
        "data": with_said(event.kind, event.data),
    }
    return encode(event.kind, json.dumps(content, ensure_ascii=False), str(event.id))
