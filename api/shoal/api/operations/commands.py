"""From a request body to a command that can be stored: everything that can be checked at once."""

import asyncio
import secrets
import uuid
from dataclasses import replace

from shoal.api.access.callers import Caller
from shoal.api.schemas.commands import CommandIn
from shoal.api.web.errors import FieldError, InvalidRequest, NotNewestAttempt
from shoal.core.definition.fields import Priority
from shoal.core.definition.model import WorkflowSpec
from shoal.core.definition.parameters import launch_problems
from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.errors import shortened
from shoal.core.hints import MOST_MISTAKES, Hints
from shoal.core.runs.commands import Command, CommandType, NewCommand
from shoal.core.runs.records import Instance
from shoal.sql import UnitOfWork
from shoal.sql.errors import Archived

_ABOUT_TASK = frozenset({CommandType.KILL_TASK, CommandType.FORCE_SUCCESS})
_MOST_AT_ONCE = 10_000  # characters of values that are checked in the event loop


# -- what the body alone says -----------------------------------------------------------------


def check_shape(body: CommandIn, header_key: str | None) -> str:
    """Return the idempotency key, a random one if none is given.

    Raises InvalidRequest naming each field that does not go with the type.
    """
    errors = [FieldError(name, text) for name, text in body.shape_problems()]
    if header_key is not None and body.idempotency_key not in (None, header_key):
        errors.append(FieldError("idempotency_key", "differs from the header Idempotency-Key"))
    if errors:
        raise InvalidRequest(errors)
    return header_key or body.idempotency_key or str(uuid.uuid4())


# -- the command ----------------------------------------------------------------------------


async def new_command(
    uow: UnitOfWork, body: CommandIn, key: str, partitions: int, caller: Caller
) -> NewCommand:
    """Return the command of ``body``, which ``caller`` asks for.

    Raises NotFound, InvalidRequest for parameters and tasks that the workflow does not have,
    NotNewestAttempt for a task instance that another one has followed.
    """
    new = await _unsigned(uow, body, key, partitions)
    return replace(new, requested_by=caller.name, caller_id=caller.principal.id)


async def _unsigned(uow: UnitOfWork, body: CommandIn, key: str, partitions: int) -> NewCommand:
    if body.type is CommandType.START:
        return await _start(uow, body, key, partitions)
    if body.type in _ABOUT_TASK:
        return await _about_task(uow, body, key)
    assert body.instance_id is not None, "check_shape has seen it"
    instance = await uow.instances.get(body.instance_id)
    selection = _selection(body)
    if selection is not None:
        version = await uow.workflows.version(instance.workflow_id, instance.version)
        await asyncio.to_thread(check_tasks, version.spec, selection)
    return replace(_about(instance, body, key), selection=selection)


async def _start(uow: UnitOfWork, body: CommandIn, key: str, partitions: int) -> NewCommand:
    assert body.workflow is not None, "check_shape has seen it"
    version = await uow.workflows.version_by_name(
        body.project or "default", body.workflow, body.version
    )
    if version.archived_at is not None:
        raise Archived(version.project, version.name)
    selection = _selection(body)
    await _check_start(version.spec, body.parameters, selection)
    return NewCommand(
        type=body.type,
        partition=secrets.randbelow(partitions),  # not by the key, which callers choose
        idempotency_key=key,
        workflow_id=version.workflow_id,
        version=body.version,
        parameters=body.parameters,
        logical_time=body.logical_time,
        priority=None if body.priority is None else int(Priority[body.priority]),
        requested_by="",
        selection=selection,
        labels=body.labels,
    )


async def _about_task(uow: UnitOfWork, body: CommandIn, key: str) -> NewCommand:
    instance_id, task = body.instance_id, body.task
    if body.task_instance_id is not None:
        named = await uow.tasks.get(body.task_instance_id)
        instance_id, task = named.workflow_instance_id, named.task
    assert instance_id is not None, "check_shape has seen it"
    assert task is not None, "check_shape has seen it"
    instance = await uow.instances.get(instance_id)
    newest = await uow.tasks.newest(instance_id, task)
    if newest is None:
        version = await uow.workflows.version(instance.workflow_id, instance.version)
        raise InvalidRequest([FieldError("task", _no_such_task(version.spec, task, Hints()))])
    if body.task_instance_id not in (None, newest.id):
        raise NotNewestAttempt(
            f"task instance {body.task_instance_id} is over: attempt {newest.attempt} of {task}, "
            f"task instance {newest.id}, came after it"
        )
    detail = {} if body.reason is None else {"reason": body.reason}
    return replace(_about(instance, body, key), task=task, detail=detail)


def _about(instance: Instance, body: CommandIn, key: str) -> NewCommand:
    return NewCommand(
        type=body.type,
        partition=instance.partition,
        idempotency_key=key,
        workflow_id=instance.workflow_id,
        instance_id=instance.id,
        requested_by="",
    )


def _selection(body: CommandIn) -> Selection | None:
    if body.tasks is None:
        return None
    return Selection(tuple(dict.fromkeys(body.tasks)), body.mode or SelectionMode.ONLY)


async def _check_start(
    spec: WorkflowSpec, given: dict[str, str], selection: Selection | None
) -> None:
    """Check what a START brings; much of it out of the event loop, which all requests share."""

    def check() -> None:
        check_parameters(spec, given)
        if selection is not None:
            check_tasks(spec, selection)

    values = (given.get(name, one.default) or "" for name, one in spec.parameters.items())
    if selection is not None or len(given) > 100 or sum(map(len, values)) > _MOST_AT_ONCE:
        await asyncio.to_thread(check)
    else:
        check()


def check_parameters(spec: WorkflowSpec, given: dict[str, str]) -> None:
    """Raise InvalidRequest naming each parameter that this version cannot start with."""
    problems = launch_problems(spec.parameters, given)
    if problems:
        raise InvalidRequest(
            [FieldError(f"parameters.{name}", text) for name, text in problems.items()]
        )


def check_tasks(spec: WorkflowSpec, selection: Selection) -> None:
    """Raise InvalidRequest naming each chosen task that this version does not have."""
    unknown = selection.unknown(task.name for task in spec.tasks)
    if unknown:
        hints = Hints()
        raise InvalidRequest(
            [
                FieldError("tasks", _no_such_task(spec, name, hints))
                for name in unknown[:MOST_MISTAKES]
            ]
        )


def _no_such_task(spec: WorkflowSpec, name: str, hints: Hints) -> str:
    close = hints.similar(name, (task.name for task in spec.tasks), 3)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"the workflow has no task {shortened(name, 120)!r}{hint}"


def same_request(stored: Command, new: NewCommand) -> bool:
    """Return whether a stored command of the same key is the same request."""
    # The one that creates a backfill is given the id of it when it is done.
    if new.backfill_id not in (None, stored.backfill_id):
        return False
    return all(
        getattr(stored, name) == getattr(new, name)
        for name in (
            "type",
            "workflow_id",
            "instance_id",
            "version",
            "parameters",
            "logical_time",
            "priority",
            "selection",
            "task",
            "detail",
            "labels",
        )
    )
