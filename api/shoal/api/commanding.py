"""From a request body to a command that can be stored: everything that can be checked at once."""

import uuid
from collections.abc import Iterator

from shoal.api.errors import FieldError, InvalidRequest
from shoal.api.schemas.commands import CommandIn
from shoal.coordination.keys import partition_of
from shoal.core.commands import Command, CommandType, NewCommand
from shoal.core.model import WorkflowSpec
from shoal.core.parameters import launch_problems
from shoal.core.priority import Priority
from shoal.sql import UnitOfWork

REQUESTED_BY = "api"
_OF_START = ("project", "workflow", "version", "parameters", "logical_time", "priority")


def check_shape(body: CommandIn, header_key: str | None) -> str:
    """Return the idempotency key, a random one if none is given.

    Raises InvalidRequest naming each field that does not go with the type.
    """
    errors = list(_shape_errors(body))
    if header_key is not None and body.idempotency_key not in (None, header_key):
        errors.append(FieldError("idempotency_key", "differs from the header Idempotency-Key"))
    if errors:
        raise InvalidRequest(errors)
    return header_key or body.idempotency_key or str(uuid.uuid4())


def _shape_errors(body: CommandIn) -> Iterator[FieldError]:
    if body.type is CommandType.START:
        if body.workflow is None:
            yield FieldError("workflow", "is required for START")
        if body.instance_id is not None:
            yield FieldError("instance_id", "does not go with START")
        return
    if body.instance_id is None:
        yield FieldError("instance_id", f"is required for {body.type}")
    for name in _OF_START:
        if getattr(body, name) not in (None, {}):
            yield FieldError(name, f"does not go with {body.type}")


async def new_command(uow: UnitOfWork, body: CommandIn, key: str, partitions: int) -> NewCommand:
    """Return what ``body`` asks for. Raises NotFound, or InvalidRequest for its parameters."""
    if body.instance_id is not None:
        instance = await uow.instances.get(body.instance_id)
        return NewCommand(
            type=body.type,
            partition=instance.partition,
            idempotency_key=key,
            workflow_id=instance.workflow_id,
            instance_id=instance.id,
            requested_by=REQUESTED_BY,
        )
    assert body.workflow is not None, "check_shape has seen it"
    version = await uow.workflows.version_by_name(
        body.project or "default", body.workflow, body.version
    )
    check_parameters(version.spec, body.parameters)
    return NewCommand(
        type=body.type,
        partition=partition_of(key, partitions),
        idempotency_key=key,
        workflow_id=version.workflow_id,
        version=body.version,
        parameters=body.parameters,
        logical_time=body.logical_time,
        priority=None if body.priority is None else int(Priority[body.priority]),
        requested_by=REQUESTED_BY,
    )


def check_parameters(spec: WorkflowSpec, given: dict[str, str]) -> None:
    """Raise InvalidRequest naming each parameter that this version cannot start with."""
    problems = launch_problems(spec.parameters, given)
    if problems:
        raise InvalidRequest(
            [FieldError(f"parameters.{name}", text) for name, text in problems.items()]
        )


def same_request(stored: Command, new: NewCommand) -> bool:
    """Say whether a stored command of the same key asks for the same thing."""
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
        )
    )
