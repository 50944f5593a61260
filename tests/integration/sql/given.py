"""What tests start from: definitions, published workflows, started instances."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from shoal.core.decide import decide
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import Command, CommandType, NewCommand
from shoal.core.runs.events import Event
from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Decision, Run
from shoal.sql import Database
from tests.support.instances import create

PARTITIONS = 8
NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)

_numbers = itertools.count(1)


def definition(
    name: str = "flow",
    tasks: Sequence[str] | Mapping[str, Sequence[str]] = ("a", "b"),
    **fields: Any,
) -> WorkflowSpec:
    """A workflow of SHELL tasks: names, or names with their upstream tasks."""
    upstream = tasks if isinstance(tasks, Mapping) else dict.fromkeys(tasks, ())
    return WorkflowSpec.model_validate(
        {
            "project": "demo",
            "name": name,
            "tasks": [
                {"name": t, "type": "SHELL", "params": {"command": "true"}, "depends_on": list(up)}
                for t, up in upstream.items()
            ],
            **fields,
        }
    )


async def published(database: Database, spec: WorkflowSpec | None = None) -> int:
    """Publish a definition; return the workflow's id."""
    async with database.unit_of_work() as uow:
        stored = await uow.workflows.publish(spec or definition(), NOW)
        await uow.commit()
    return stored.version.workflow_id


def start(workflow_id: int, key: str | None = None, **fields: Any) -> NewCommand:
    """A START command with a key of its own."""
    key = key or f"key-{next(_numbers)}"
    return NewCommand(CommandType.START, fields.pop("partition", 0), key, workflow_id, **fields)


async def accepted(database: Database, *new: NewCommand) -> list[Command]:
    """Store commands."""
    async with database.unit_of_work() as uow:
        stored = await uow.commands.add_many(new, NOW)
        await uow.commit()
    return [command for command, _ in stored]


def instance(command: Command, **fields: Any) -> NewInstance:
    """An instance about to be created for a command."""
    values: dict[str, Any] = {
        "command_id": command.id,
        "workflow_id": command.workflow_id,
        "version": 1,
        "partition": command.partition,
        "priority": 2,
        "parameters": {},
        "logical_time": NOW,
        "created_at": NOW,
        "admitted_at": NOW,
    }
    return NewInstance(**{**values, **fields})


async def created(database: Database, workflow_id: int, count: int = 1, **fields: Any) -> list[Run]:
    """Create instances of version 1 (or ``version``) in partition 0 (or ``partition``)."""
    partition = fields.get("partition", 0)
    commands = await accepted(
        database, *(start(workflow_id, partition=partition) for _ in range(count))
    )
    async with database.unit_of_work() as uow:
        runs = await create(uow, [instance(one, **fields) for one in commands])
        await uow.commit()
    return runs


async def stored(database: Database, run: Run, event: Event) -> Decision:
    """Decide upon an event, apply the decision and store it; new attempts get their ids."""
    decision = decide(run, event)
    run.apply(decision)
    async with database.unit_of_work() as uow:
        ids = await uow.instances.save([(run, decision)], event.at)
        await uow.commit()
    adopt_ids(run, ids)
    return decision


def adopt_ids(run: Run, ids: dict[tuple[int, str, int], int]) -> None:
    """Give new attempts the ids that ``save`` returned."""
    for (run_id, task, number), new_id in ids.items():
        if run_id == run.id and run.attempts[task].number == number:
            run.replace([replace(run.attempts[task], id=new_id)])


# Some tens of milliseconds of SQLite's virtual machine.
LONG = text(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
    " SELECT count(*) AS found FROM n"
)
