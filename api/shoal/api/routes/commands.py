"""Commands: the only way to start anything, or to change what runs."""

import asyncio
import time
from typing import Annotated

from fastapi import Body, Header, Path, Query, Response

from shoal.api.access.audit import Record, Recording, action_of_command
from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.commands import check_shape, new_command, same_request
from shoal.api.operations.feed import Feed
from shoal.api.operations.intake import Intake
from shoal.api.schemas.commands import LONGEST_KEY, CommandIn, CommandOut
from shoal.api.services import ClusterDep, FeedDep, IntakeDep, StoreDep, StreamsDep
from shoal.api.web.answers import legible
from shoal.api.web.errors import KeyReused
from shoal.api.web.paging import MAX_ID
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.backfill.request import JUDGED
from shoal.core.definition.fields import ONE_LINE, Priority
from shoal.core.runs.commands import Command, CommandState, NewCommand

router = strict_router("commands")

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=LONGEST_KEY,
        pattern=ONE_LINE,
        description="The same key of the same caller never starts anything twice; a repetition "
        "returns the first, for as long as the command is kept.",
    ),
]
LONGEST_WAIT_S = 30  # below the minute after which proxies usually end a quiet request
# Pauses between two reads of a pending command: most are handled within milliseconds.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.1


@router.post(
    "/commands",
    summary="Start a workflow, or change what runs",
    status_code=202,
    responses=documented(400, 404, 409, 413, 415, 429),
)
@needs(Permission.RUN_OPERATE, audit="command.request")
async def post_command(
    store: StoreDep,
    cluster: ClusterDep,
    feed: FeedDep,
    intake: IntakeDep,
    caller: Calling,
    record: Recording,
    body: Annotated[CommandIn, Body()],
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> CommandOut:
    """Stores the command durably; a master carries it out a moment later.

    Read the outcome with `GET /commands/{id}?wait=30`.
    """
    intake.begin(caller.principal)
    key = check_shape(body, idempotency_key)
    # Checked outside of the writing transaction, which all processes wait for. If the workflow
    # changes in between, the master that carries the command out judges again.
    async with store.unit_of_work(read_only=True) as uow:
        new = await new_command(uow, body, key, cluster.partitions, caller)
    record.action = action_of_command(body.type)
    return await accept(feed, intake, new, response, record)


async def accept(
    feed: Feed, intake: Intake, new: NewCommand, response: Response, record: Record
) -> CommandOut:
    """Store a command, or find the one that has its key, and notify the partition's owner."""
    command, created = await intake.add(new, record)
    if not created and not same_request(command, new):
        raise KeyReused(
            f"the idempotency key {new.idempotency_key!r} was used for command {command.id}, "
            "which asks for something else; take a new key for a new request"
        )
    feed.poll_soon()
    response.headers["Location"] = f"/api/v1/commands/{command.id}"
    response.headers["Retry-After"] = "1"
    if not created:
        response.headers["Idempotency-Replayed"] = "true"
    return _out(command)


@router.get("/commands/{command_id}", summary="Show a command", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def get_command(
    store: StoreDep,
    streams: StreamsDep,
    command_id: Annotated[int, Path(ge=1, le=MAX_ID, examples=[12])],
    wait: Annotated[
        float, Query(ge=0, le=LONGEST_WAIT_S, description="Seconds to wait for the outcome.")
    ] = 0,
) -> CommandOut:
    """A command and its outcome. With `wait` it answers as soon as the state is not PENDING."""
    deadline_s = time.monotonic() + wait
    pause_s = SHORTEST_PAUSE_S
    while True:
        async with store.unit_of_work(read_only=True) as uow:
            command = await uow.commands.get(command_id)
        left_s = deadline_s - time.monotonic()
        if command.state is not CommandState.PENDING or left_s <= 0 or streams.stopping.is_set():
            with legible("command", command_id):
                return _out(command)
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)


def _out(command: Command) -> CommandOut:
    assert command.created_at is not None, "it is stored"
    selection = command.selection
    return CommandOut.of_record(
        command,
        priority=None if command.priority is None else Priority(command.priority).name,
        tasks=None if selection is None else list(selection.tasks),
        mode=None if selection is None else selection.mode,
        labels=dict(command.labels),
        detail={name: one for name, one in command.detail.items() if name != JUDGED},
    )
