"""The queries that run all the time find their rows by index, on a database with a history."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from shoal.core.definition.model import Overlap
from shoal.core.runs.overlap import OverlapPolicy
from shoal.core.runs.records import WorkflowOrder
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database, UnitOfWork
from tests.integration.sql.given import NOW
from tests.integration.sql.plans.plans import busy as busy
from tests.integration.sql.plans.plans import plans_of, reads_all

QUERIES: dict[str, tuple[Callable[[UnitOfWork], Awaitable[Any]], str]] = {
    "commands.starts": (lambda uow: uow.commands.starts(range(4), 5), "ix_command_pending"),
    "commands.requests": (
        lambda uow: uow.commands.requests(range(8), 5),
        "ix_command_pending_requests",
    ),
    "admission.lineup": (
        lambda uow: uow.admission.lineup(1, OverlapPolicy(Overlap.QUEUE, 2, 10)),
        "ix_workflow_instance_waiting",
    ),
    "admission.lineup, its active runs": (
        lambda uow: uow.admission.lineup(1, OverlapPolicy(Overlap.REPLACE, 2, 10)),
        "ix_workflow_instance_unfinished",
    ),
    "commands.backlog": (lambda uow: uow.commands.backlog(), "ix_command_pending"),
    "commands.add": (
        lambda uow: uow.commands.with_key("k7"),
        "uq_command_idempotency_key",
    ),
    "instances.open_runs": (
        lambda uow: uow.instances.open_runs(4),
        "ix_workflow_instance_open",
    ),
    "instances.open_counts": (
        lambda uow: uow.instance_counts.open(range(8)),
        "ix_workflow_instance_open",
    ),
    "tasks.counts": (
        lambda uow: uow.tasks.counts([TaskState.CLAIMED, TaskState.RUNNING]),
        "ix_task_instance_state_id",
    ),
    "instances.list": (
        lambda uow: uow.instances.list(limit=20, before=(NOW, 2000)),
        "ix_workflow_instance_created_at_id",
    ),
    "instances.list by workflow": (
        lambda uow: uow.instances.list(project="demo", workflow="flow", limit=20),
        "ix_workflow_instance_workflow_id_state_created_at_id",
    ),
    "instances.list by state": (
        lambda uow: uow.instances.list(
            states=[WorkflowState.RUNNING, WorkflowState.FAILED], limit=20
        ),
        "ix_workflow_instance_state_created_at_id",
    ),
    "tasks.of_instance": (
        lambda uow: uow.tasks.of_instance(77),
        "uq_task_instance_workflow_instance_id_position_attempt",
    ),
    "tasks.list by state": (
        lambda uow: uow.tasks.list(states=[TaskState.RUNNING], limit=20),
        "ix_task_instance_state_id",
    ),
    "tasks.list by worker": (
        lambda uow: uow.tasks.list(worker="w3", limit=20),
        "ix_task_instance_worker_id",
    ),
    "instances.task_counts": (
        lambda uow: uow.instance_counts.tasks([5, 6]),
        "uq_task_instance_workflow_instance_id_position_attempt",
    ),
    "grid.cells": (
        lambda uow: uow.grid.cells([5, 6], ["t1"]),
        "uq_task_instance_workflow_instance_id_position_attempt",
    ),
    "grid.newest": (
        lambda uow: uow.grid.newest(1, NOW, NOW + timedelta(days=1), 10),
        "ix_workflow_instance_workflow_id_logical_time",
    ),
    "recent.runs": (
        lambda uow: uow.recent.runs([1, 2], 14),
        "ix_workflow_instance_workflow_id_logical_time",
    ),
    "workflows.ranked": (
        lambda uow: uow.workflow_list.ranked(order=WorkflowOrder.FAILING),
        "ix_workflow_instance_workflow_id_logical_time",
    ),
    "grid.kept_since": (
        lambda uow: uow.grid.kept_since(1),
        "ix_workflow_instance_workflow_id_state_created_at_id",
    ),
    "schedules.due": (
        lambda uow: uow.schedules.due(range(4), NOW, 10),
        "ix_schedule_next_fire_at_partition",
    ),
    "schedules.firing": (
        lambda uow: uow.schedules.firing(NOW + timedelta(days=1), 10),
        "ix_schedule_next_fire_at_partition",
    ),
    "schedules.next_due": (
        lambda uow: uow.schedules.next_due(range(4)),
        "ix_schedule_next_fire_at_partition",
    ),
    "schedules.next_due after a moment": (
        lambda uow: uow.schedules.next_due(range(4), NOW),
        "ix_schedule_next_fire_at_partition",
    ),
    "slots.waiting_in": (
        lambda uow: uow.slots.waiting_in("demo/g", 5),
        "ix_task_instance_blocked",
    ),
    "events.after": (lambda uow: uow.events.after(3900, 10), "pk_event"),
    "events.after of an instance": (
        lambda uow: uow.events.after(0, 10, instance_id=7),
        "ix_event_workflow_instance_id_id",
    ),
}
# What SQLite calls the indices of primary keys and of unique constraints.
_IMPLICIT = {"pk_": "INTEGER PRIMARY KEY", "uq_": "sqlite_autoindex_"}


async def test_hot_queries_use_their_indices(busy: Database) -> None:
    wrong = []
    for name, (ask, index) in QUERIES.items():
        plans = await plans_of(busy, ask)
        if busy.kind == "sqlite" and index[:3] in _IMPLICIT:
            index = _IMPLICIT[index[:3]]
        if not any(index in plan for plan in plans) or any(map(reads_all, plans)):
            wrong.append(f"{name} does not go by {index}:\n" + "\n".join(plans))
    assert not wrong, "\n\n".join(wrong)


async def test_first_page_is_the_end_of_the_table(busy: Database) -> None:
    plan, _ = await plans_of(busy, lambda uow: uow.instances.list(limit=20))
    assert "ix_workflow_instance_created_at_id" in plan  # backwards, no further than needed
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
