"""Junk in every kind of row: it is quarantined, and stops neither a master nor anything else.

Real masters on a real database; the junk is what a newer version, a bug or a person with a
database client may leave there. ``SHOAL_JUNK_SEED`` plays other junk.
"""

import asyncio
import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Table, text

from shoal.coordination import partition_of
from shoal.core.data_sources.spec import DataSourceSpec, SourcePassword
from shoal.core.definition.environments import EnvironmentSpec
from shoal.core.runs.commands import CommandState, CommandType, NewCommand
from shoal.core.runs.quarantine import ItemKind, QuarantinedItem
from shoal.core.runs.records import Instance
from shoal.core.runs.retention import NewPurge
from shoal.core.runs.states import WorkflowState
from shoal.proto import shoal_pb2 as pb
from shoal.sql.errors import SqlError
from shoal.sql.schema import tables
from shoal.sql.schema.types import Json, OneLine, Prose
from tests.integration.master.conftest import PARTITIONS, Bench
from tests.support.waiting import DEADLINE_S

SEED = int(os.environ.get("SHOAL_JUNK_SEED", "11"))
TASKS: dict[str, dict[str, Any]] = {"a": {}, "b": {"depends_on": ["a"]}}

TEXTS = ("", "JUNK", "☃" * 20, "{}", "None", "../..", "\x7f\u202e", "0")
JSONS = (
    "not json",
    "[]",
    "[1,2]",
    "{}",
    '"text"',
    "17",
    "NaN",
    "[" * 2000,
    '{"tasks":7}',
    '{"a":{"b":[null]}}',
    '{"instance_id":"x"}',
    '{"name":"w","tasks":[{"name":"a","type":"SHELL"}],"of_a_newer_version":1}',
)
NUMBERS = (-1, 99, 2**31 - 1)


async def junk(bench: Bench, table: Table, column: str, value: Any, **where: Any) -> None:
    """Write a value as it is, past everything that checks or encodes."""
    conditions = " AND ".join(f'"{name}" = :w_{name}' for name in where) or "1 = 1"
    statement = text(f'UPDATE "{table.name}" SET "{column}" = :value WHERE {conditions}')
    values = {"value": value, **{f"w_{name}": one for name, one in where.items()}}
    async with bench.database.unit_of_work() as uow:
        await uow.connection.execute(statement, values)
        await uow.commit()


async def quarantined(bench: Bench, kind: ItemKind, item: object) -> QuarantinedItem:
    """Wait until a thing is quarantined, and return its record."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            async with bench.database.unit_of_work(read_only=True) as uow:
                if (found := await uow.quarantine.of(kind, item)) is not None:
                    return found
            await asyncio.sleep(0.02)


async def released(bench: Bench, kind: ItemKind, item: object) -> None:
    """Wait until a thing is no longer quarantined."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            async with bench.database.unit_of_work(read_only=True) as uow:
                if await uow.quarantine.of(kind, item) is None:
                    return
            await asyncio.sleep(0.02)


async def accepted(bench: Bench, workflow: int, key: str, **fields: Any) -> int:
    """Add a START without a notification; return its id."""
    new = NewCommand(CommandType.START, partition_of(key, PARTITIONS), key, workflow, **fields)
    async with bench.database.unit_of_work() as uow:
        command, _ = await uow.commands.add(new, datetime.now(UTC))
        await uow.commit()
    return command.id


async def runs(bench: Bench, workflow: int, key: str) -> None:
    """Run a workflow from command to success."""
    instance = await bench.start(workflow, key)
    async with (await bench.worker(f"worker of {key}")).working():
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED


SPEC = '{"name":"w","tasks":[{"name":"a","type":"SHELL"}],"of_a_newer_version":1}'


async def test_start_of_an_unusable_definition_is_refused_and_ends_no_master(bench: Bench) -> None:
    bad = await bench.publish(TASKS)
    good = await bench.publish(TASKS, name="good")
    await junk(bench, tables.workflow_version, "spec", SPEC, workflow_id=bad)
    async with bench.master() as one, bench.master() as two:
        refused = await bench.command(CommandType.START, bad, "bad")
        await runs(bench, good, "good")
        assert not one.done()
        assert not two.done()
    assert refused.state is CommandState.REFUSED
    assert "of_a_newer_version" in (refused.reason or "")


async def _open(bench: Bench, workflow: int) -> Instance:
    """Start a run, and let its master go away."""
    async with bench.master():
        return await bench.start(workflow, f"open {workflow}")


async def test_open_run_that_cannot_be_read_is_quarantined_until_it_is_repaired(
    bench: Bench,
) -> None:
    workflow = await bench.publish(TASKS)
    good = await bench.publish(TASKS, name="good")
    instance = await _open(bench, workflow)
    async with bench.database.unit_of_work(read_only=True) as uow:
        spec = (await uow.workflows.spec(workflow, 1)).canonical()
    await junk(bench, tables.workflow_version, "spec", SPEC, workflow_id=workflow)
    async with bench.master(scan_interval_s=60.0) as master:
        record = await quarantined(bench, ItemKind.INSTANCE, instance.id)
        assert "of_a_newer_version" in record.reason
        assert record.partition == instance.partition
        refused = await bench.command(CommandType.RECOVER, workflow, "too early", instance)
        assert refused.state is CommandState.REFUSED
        assert "of_a_newer_version" in (refused.reason or "")
        stopped = await bench.command(CommandType.STOP, workflow, "stop", instance)
        assert f"shoal recover {instance.id}" in (stopped.reason or "")
        assert (await bench.instance(instance.id)).state is WorkflowState.RUNNING
        await junk(bench, tables.workflow_version, "spec", json.dumps(spec), workflow_id=workflow)
        done = await bench.command(CommandType.RECOVER, workflow, "again", instance)
        assert done.state is CommandState.DONE, done.reason
        await released(bench, ItemKind.INSTANCE, instance.id)
        await (await bench.worker("w")).work(2)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
        await runs(bench, good, "good")
        assert not master.done()


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("outputs", "[1]", "column outputs: [1] is not an object"),
        ("outputs", '{"x":1}', 'column outputs: {"x":1} holds values that are not texts'),
        ("detail", '"text"', 'column detail: "text" is not an object'),
    ],
)
async def test_open_run_with_json_of_another_kind_is_quarantined(
    bench: Bench, column: str, value: str, reason: str
) -> None:
    instance = await _open(bench, await bench.publish(TASKS))
    where = {"workflow_instance_id": instance.id, "task": "a"}
    await junk(bench, tables.task_instance, column, value, **where)
    async with bench.master(scan_interval_s=60.0):
        assert reason in (await quarantined(bench, ItemKind.INSTANCE, instance.id)).reason
        await junk(bench, tables.task_instance, column, "{}", **where)
        done = await bench.command(CommandType.RECOVER, instance.workflow_id, "again", instance)
        assert done.state is CommandState.DONE, done.reason
        async with (await bench.worker("w")).working():
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED


async def test_next_owner_tries_again_what_was_quarantined(bench: Bench) -> None:
    workflow = await bench.publish(TASKS)
    instance = await _open(bench, workflow)
    await junk(bench, tables.workflow_instance, "parameters", "not json", id=instance.id)
    async with bench.master(scan_interval_s=60.0):
        await quarantined(bench, ItemKind.INSTANCE, instance.id)
    await junk(bench, tables.workflow_instance, "parameters", "{}", id=instance.id)
    async with bench.master(scan_interval_s=60.0):
        async with (await bench.worker("w")).working():
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
        await released(bench, ItemKind.INSTANCE, instance.id)


async def test_retry_that_was_requested_is_not_waited_for(bench: Bench) -> None:
    """By itself it would be tried again after two minutes."""
    workflow = await bench.publish(TASKS)
    instance = await _open(bench, workflow)
    await junk(bench, tables.workflow_instance, "parameters", "not json", id=instance.id)
    async with bench.master(scan_interval_s=60.0):
        record = await quarantined(bench, ItemKind.INSTANCE, instance.id)
        await junk(bench, tables.workflow_instance, "parameters", "{}", id=instance.id)
        async with bench.database.unit_of_work() as uow:
            await uow.quarantine.request_retry(
                record.kind, record.item, record.consumer, datetime.now(UTC)
            )
            await uow.commit()
        async with (await bench.worker("w")).working():
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
        await released(bench, ItemKind.INSTANCE, instance.id)


async def test_entries_of_ended_tasks_and_of_quarantined_runs_hold_up_no_other(
    bench: Bench,
) -> None:
    workflow = await bench.publish(TASKS)
    good = await bench.publish(TASKS, name="good")
    worker = await bench.worker("w")
    async with bench.master(sweep_interval_s=60.0):
        bad = await bench.start(workflow, "bad")
        (of_bad,) = await worker.claim()
        await worker.queue.release([of_bad])
        ended = await bench.start(good, "ended")
        (of_ended,) = await worker.claim()
        await worker.queue.put([of_ended.entry])
        await worker.fetch([of_ended])
        await worker.report(of_ended, pb.SUCCEEDED)
        await worker.queue.release([of_ended])
        await worker.work(1)
        assert await bench.ended(ended.id) is WorkflowState.SUCCEEDED
    await junk(bench, tables.workflow_instance, "parameters", "not json", id=bad.id)
    # As sweeps may have put them back, or a crash has left them.
    await worker.queue.put([of_bad.entry, of_ended.entry])
    async with bench.master(scan_interval_s=60.0, sweep_interval_s=60.0):
        await quarantined(bench, ItemKind.INSTANCE, bad.id)
        after = await bench.start(good, "after")
        assert await worker.work(2) == 2  # the stale entries come first: both are refused
        assert await bench.ended(after.id) is WorkflowState.SUCCEEDED


async def test_what_is_repaired_goes_on_by_itself(bench: Bench) -> None:
    workflow = await bench.publish(TASKS)
    key = "k"
    command = await accepted(bench, workflow, key)
    await junk(bench, tables.command, "type", "OF_A_NEWER_VERSION", id=command)
    async with bench.master(scan_interval_s=0.3) as master:
        record = await quarantined(bench, ItemKind.COMMAND, command)
        assert "OF_A_NEWER_VERSION" in record.reason
        await runs(bench, workflow, "other")
        await junk(bench, tables.command, "type", "START", id=command)
        await (await bench.worker("w")).work(2)
        await released(bench, ItemKind.COMMAND, command)
        assert not master.done()


@dataclass
class Heap:
    """A random heap of junk: what was written where."""

    bench: Bench
    random: random.Random
    written: list[str] = field(default_factory=list)

    async def spoil(self, table: Table, column: str, **where: Any) -> None:
        value = self.value(table, column)
        if value is not None:
            try:
                await junk(self.bench, table, column, value, **where)
            except SqlError:  # the database itself does not take it
                return
            self.written.append(f"{table.name}.{column} {where} = {value!r:.60}")

    def value(self, table: Table, column: str) -> Any:
        kind = table.c[column].type
        if isinstance(kind, Json):
            return self.random.choice(JSONS)
        if isinstance(kind, OneLine | Prose):
            return self.random.choice(TEXTS)[: getattr(kind, "length", None) or 40]
        if kind.python_type is int:
            return self.random.choice(NUMBERS)
        if kind.python_type is float:
            return self.random.choice((-1.0, 1e300, float("inf")))
        return None


# What masters read, with columns that may hold anything.
SPOILT: Sequence[tuple[Table, Sequence[str]]] = (
    (tables.workflow_version, ("spec",)),
    (tables.workflow_instance, ("state", "priority", "parameters", "timezone", "startup")),
    (tables.workflow_instance, ("selection", "parent", "run_number", "reason")),
    (tables.task_instance, ("task", "state", "type", "worker_group", "worker", "failures")),
    (tables.task_instance, ("skip_cause", "doomed", "outputs", "detail", "concurrency_group")),
    (tables.command, ("type", "parameters", "selection", "parent", "detail", "timezone")),
    (tables.command, ("priority", "version", "task")),
    (tables.schedule, ("cron", "timezone", "parameters", "on_gap", "on_overlap", "missed")),
    (tables.schedule, ("exclude", "calendar", "missed_window", "priority")),
    (tables.calendar, ("days",)),
    (tables.backfill, ("state", "request")),
    (tables.project, ("parameters",)),
    (tables.secret, ("ciphertext",)),
    (tables.data_source, ("kind", "host", "port", "options", "shared_with", "password")),
    (tables.environment, ("variables", "python", "setup", "worker_groups", "version")),
    (tables.cluster, ("tree_address",)),  # with another uid no role starts: test_binding.py
    (tables.concurrency_group, ("slots",)),
)


@pytest.mark.parametrize("number", range(2))
async def test_junk_in_every_kind_of_row_stops_nothing_else(bench: Bench, number: int) -> None:
    heap = Heap(bench, random.Random(f"{SEED} {number}"))
    good = await bench.publish(TASKS, name="good", project="good")
    victims = await _victims(bench)
    for table, columns in SPOILT:
        for column in columns:
            for row in victims[table.name]:
                if heap.random.random() < 0.35:
                    await heap.spoil(table, column, **row)
    assert len(heap.written) > 20
    async with bench.master() as one, bench.master() as two:
        for n in range(6):
            await runs(bench, good, f"good {n}")
            assert not one.done(), heap.written
            assert not two.done(), heap.written
        await _lists(bench)
        async with bench.database.unit_of_work(read_only=True) as uow:
            records = await uow.quarantine.list()
    assert records, heap.written
    assert all(item.reason for item in records)


async def _victims(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    """Make some rows of every kind, and return the keys of those to be spoilt."""
    ids = []
    async with bench.database.unit_of_work() as uow:
        await uow.projects.ensure("default", datetime.now(UTC))
        await uow.secrets.put("default", "s", "x", datetime.now(UTC))
        source = DataSourceSpec.model_validate({"kind": "hive", "host": "db"})
        password = SourcePassword("x")
        await uow.data_sources.put("default", "d", source, password, datetime.now(UTC))
        await uow.environments.put("e", EnvironmentSpec(setup="true"), datetime.now(UTC))
        await uow.calendars.put("default", "c", [], "", datetime.now(UTC))
        await uow.concurrency.put("default", "g", 1, "", datetime.now(UTC))
        await uow.partitions.ensure(PARTITIONS)
        await uow.commit()
    for n in range(6):
        schedules = [{"cron": "* * * * * ?", "calendar": "c", "parameters": {"x": "1"}}]
        tasks: dict[str, dict[str, Any]] = {
            "a": {"concurrency_group": "g"} if n % 2 else {},
            "b": {"depends_on": ["a"], "environment": "e"},
            "c": {"type": "DEPENDENT", "params": {"when": {"workflow": "w0", "date": "today"}}},
        }
        overlap = {"overlap": "queue"} if n % 3 == 0 else {}
        ids.append(
            await bench.publish(
                tasks, name=f"w{n}", schedules=schedules, parameters={"x": "1"}, **overlap
            )
        )
    async with bench.master():
        instances = [await bench.start(ids[n % 6], f"victim {n}") for n in range(18)]
    commands = [await accepted(bench, ids[n % 6], f"pending {n}") for n in range(18)]
    for n, instance in enumerate(instances[::2]):
        new = NewCommand(
            list(CommandType)[n % len(CommandType)],
            instance.partition,
            f"about {n}",
            instance.workflow_id,
            instance_id=instance.id,
            detail={"task_instance_id": 1, "index": 0},
        )
        async with bench.database.unit_of_work() as uow:
            command, _ = await uow.commands.add(new, datetime.now(UTC))
            await uow.commit()
        commands.append(command.id)
    tasks_of = [task.id for one in instances for task in await bench.tasks(one.id)]
    return {
        "workflow_version": [{"workflow_id": one} for one in ids[:2]],
        "workflow_instance": [{"id": one.id} for one in instances],
        "task_instance": [{"id": one} for one in tasks_of],
        "command": [{"id": one} for one in commands],
        "schedule": [{"id": n + 1} for n in range(6)],
        "calendar": [{"name": "c"}],
        "backfill": [{"id": 1}],
        "project": [{"name": "default"}],
        "secret": [{"name": "s"}],
        "data_source": [{"name": "d"}],
        "environment": [{"name": "e"}],
        "cluster": [{"number": 1}],
        "concurrency_group": [{"name": "g"}],
    }


async def _lists(bench: Bench) -> None:
    """What the API lists can be listed: of junk nothing, or what can be read of it."""
    async with bench.database.unit_of_work(read_only=True) as uow:
        found = await uow.instances.list(limit=200)
        assert len([one for one in found if one.project == "good"]) >= 6
        await uow.tasks.list(limit=200)
        await uow.workflow_list.page()
        await uow.schedules.list()
        await uow.backfills.list()
        await uow.calendars.list()
        await uow.projects.list()
        await uow.events.after(0, 1000)
        await uow.concurrency.list()
        await uow.data_sources.list()
        await uow.environments.list()
        for one in found:
            await uow.tasks.of_instance(one.id)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (tables.purge, "created_at", 2**62),
        (tables.purge, "project", "x"),
        (tables.purge_part, "instances", 2**62),
    ],
)
async def test_purge_that_cannot_be_read_holds_up_no_other(
    bench: Bench, table: Table, column: str, value: object
) -> None:
    now = datetime.now(UTC)
    async with bench.database.unit_of_work() as uow:
        await uow.partitions.ensure(PARTITIONS)
        bad = await uow.purges.add(NewPurge(before=now, requested_by="ada"), PARTITIONS, now)
        good = await uow.purges.add(NewPurge(before=now, requested_by="ada"), PARTITIONS, now)
        await uow.commit()
    key = "id" if table is tables.purge else "purge_id"
    try:
        await junk(bench, table, column, value, **{key: bad.id})
    except SqlError:
        pytest.skip("this database does not take the value")
    async with bench.master(), asyncio.timeout(DEADLINE_S):
        while good.finished_at is None:
            await asyncio.sleep(0.05)
            async with bench.database.unit_of_work(read_only=True) as uow:
                good = await uow.purges.get(good.id)
        if column == "created_at":
            await quarantined(bench, ItemKind.PURGE, bad.id)
