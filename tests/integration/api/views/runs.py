"""Runs that have happened, for tests of views."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskState, WorkflowState
from tests.integration.api.conftest import Api
from tests.integration.api.runs.attempts import save
from tests.support.instances import create


async def happened(
    api: Api,
    workflow: str,
    project: str = "p",
    *,
    at: datetime,
    state: WorkflowState = WorkflowState.SUCCEEDED,
    tasks: Mapping[str, TaskState] | None = None,
    **changes: Any,
) -> Run:
    """Start what is published, for a logical time, and let it come to a state by its tasks.

    ``changes``: of the new instance, such as its schedule.
    """
    command = await api.command(type="START", project=project, workflow=workflow)
    now = datetime.now(UTC)
    async with api.services.store.unit_of_work() as uow:
        stored = await uow.commands.get(command["id"])
        found = await uow.workflows.get(project, workflow)
        values: dict[str, Any] = {"created_at": now, "admitted_at": now, **changes}
        new = NewInstance(
            command_id=stored.id,
            workflow_id=found.id,
            version=found.version,
            partition=stored.partition,
            priority=2,
            parameters={},
            logical_time=at,
            **values,
        )
        [run] = await create(uow, [new])
        await uow.commands.done(stored.id, run.id, now)
        await uow.commit()
    if state is WorkflowState.QUEUED:
        return run
    attempts = {
        (name, 1): replace(run.attempts[name], state=one, started_at=now)
        for name, one in (tasks or {}).items()
    }
    begun = values["created_at"]
    ended = begun if state in FINISHED_WORKFLOW else None
    decision = Decision(
        attempts=attempts,
        state=state,
        previous=WorkflowState.QUEUED,
        started_at=begun,
        finished_at=ended,
    )
    await save(api, run, decision)
    return run
