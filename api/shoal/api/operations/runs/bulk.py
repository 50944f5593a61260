"""The same request to many runs or tasks: each is judged, and answered, by itself."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from shoal.api.access.audit import Record, action_of_command
from shoal.api.access.callers import Caller
from shoal.api.operations.cluster.view import ClusterView
from shoal.api.operations.commands import new_command, same_request
from shoal.api.operations.intake import Intake
from shoal.api.schemas.runs.bulk import MOST_ITEMS, BulkIn
from shoal.api.web.errors import KeyReused
from shoal.api.web.store import Store
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission
from shoal.core.decide import decide
from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command, CommandType, NewCommand
from shoal.core.runs.events import request_of
from shoal.core.runs.filters import NEWEST_FIRST, InstanceFilter
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import UnitOfWork

_MOST_LOOKS = 10  # parts of the history in which a filter is looked for
_MOST_TASKS = 5_000  # of all the runs whose next decision one preview makes


@dataclass(frozen=True)
class TaskEffect:
    """A task that a request would change. ``ends_early``: its process would be killed."""

    task: str
    state: TaskState
    becomes: TaskState
    ends_early: bool


@dataclass(frozen=True)
class Preview:
    """What would happen. ``refusal``: why nothing would; ``state``: of the run afterwards.

    ``tasks`` in the order of the definition; None: not looked at, or a new run's.
    """

    refusal: str | None = None
    state: WorkflowState | None = None
    tasks: list[TaskEffect] | None = None


async def preview(uow: UnitOfWork, command: NewCommand, at: datetime) -> Preview:
    """Return what a request about an instance would do to it as it is stored now."""
    assert command.instance_id is not None, "it is about an instance"
    if command.type is CommandType.RERUN:
        return Preview(state=WorkflowState.QUEUED)  # of another instance; this one stays
    run = await uow.instances.run(command.instance_id)
    decision = await asyncio.to_thread(decide, run, request_of(command, at))
    if decision.refusal is not None:
        return Preview(refusal=decision.refusal)
    newest_last = sorted(decision.attempts.items(), key=lambda item: item[0][1])
    after = {task: attempt for (task, _), attempt in newest_last}
    touched = [
        TaskEffect(
            task,
            run.attempts[task].state,
            after[task].state,
            ends_early=after[task].termination is not None and not after[task].finished,
        )
        for task in run.plan.tasks
        if task in after
    ]
    return Preview(None, decision.state or run.state, touched)


@dataclass(frozen=True)
class BulkEntry:
    """What becomes of one id: an error, a preview, or a command."""

    id: int
    new: NewCommand | None = None
    error: ShoalError | None = None
    preview: Preview | None = None
    command: Command | None = None


async def meant(
    store: Store, caller: Caller, body: BulkIn, wanted: InstanceFilter
) -> tuple[list[int], bool]:
    """Return the ids that a request is about, and whether its filter may mean more."""
    if body.ids is not None:
        return list(dict.fromkeys(body.ids)), False
    found: list[int] = []
    position = None
    async with store.unit_of_work(read_only=True) as uow:
        for _ in range(_MOST_LOOKS):
            page, position = await uow.instances.search(
                wanted, NEWEST_FIRST, position, MOST_ITEMS - len(found), caller.visible
            )
            found += [one.id for one in page]
            if position is None or len(found) == MOST_ITEMS:
                break
    return found, position is not None


def digest_of(body: BulkIn, ids: Sequence[int]) -> str:
    """Return what is the same for the same request to the same things alone."""
    asked = [body.type, body.tasks, body.mode, body.reason, sorted(ids)]
    return sha256(json.dumps(asked, separators=(",", ":")).encode()).hexdigest()[:32]


async def judged(
    store: Store, cluster: ClusterView, caller: Caller, body: BulkIn, ids: Sequence[int], key: str
) -> list[BulkEntry]:
    """Return the command for each id, or why there can be none for the caller."""
    thing = _thing(body)
    await caller.look_up(thing, ids)
    found = []
    async with store.unit_of_work(read_only=True) as uow:
        for one in ids:
            try:
                await caller.require(Permission.RUN_OPERATE, thing, one)
                command = body.command(one)
                new = await new_command(uow, command, f"{key}:{one}", cluster.partitions, caller)
                found.append(BulkEntry(one, new))
            except ShoalError as error:
                if error.retriable:
                    raise
                found.append(BulkEntry(one, error=error))
    return found


def record_of(record: Record, body: BulkIn, one: int) -> Record:
    """Return the record of the command for one id."""
    return record.about_one(action_of_command(body.type), _thing(body), one)


def _thing(body: BulkIn) -> Thing:
    return Thing.TASK_INSTANCE if body.is_about_tasks else Thing.INSTANCE


async def previewed(store: Store, items: Sequence[BulkEntry]) -> list[BulkEntry]:
    """Return the items with what would happen to each, as far as that is not too much work."""
    found: list[BulkEntry] = []
    tasks = 0
    async with store.unit_of_work(read_only=True) as uow:
        for item in items:
            if item.new is None or item.new.instance_id is None:
                found.append(item)
                continue
            instance = await uow.instances.get(item.new.instance_id)
            tasks += await uow.workflows.size(instance.workflow_id, instance.version)
            if tasks > _MOST_TASKS and item is not items[0]:
                found.append(BulkEntry(item.id, item.new, preview=Preview(state=None)))
                continue
            try:
                effect = await preview(uow, item.new, store.clock())
                found.append(BulkEntry(item.id, item.new, preview=effect))
            except ShoalError as error:
                found.append(BulkEntry(item.id, error=error))
    return found


async def stored(
    intake: Intake, items: Sequence[BulkEntry], record_of: Callable[[int], Record]
) -> list[BulkEntry]:
    """Store the commands, those of one request together; return the items with them."""

    async def store(item: BulkEntry) -> BulkEntry:
        if item.new is None:
            return item
        command, is_new = await intake.add(item.new, record_of(item.id))
        if not is_new and not same_request(command, item.new):
            text = (
                f"the idempotency key {item.new.idempotency_key!r} was used for command "
                f"{command.id}, which asks for something else; take a new key for a new request"
            )
            return BulkEntry(item.id, error=KeyReused(text))
        return BulkEntry(item.id, item.new, command=command)

    return list(await asyncio.gather(*map(store, items)))
