"""Attempts in states that a master would have stored."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import TaskState, WorkflowState
from tests.integration.api.conftest import PREFIX, Api


async def save(api: Api, run: Run, decision: Decision) -> Mapping[Any, int]:
    """Store what a master would have decided; return the ids of new attempts."""
    run.apply(decision)
    async with api.services.store.unit_of_work() as uow:
        ids = await uow.instances.save([(run, decision)], datetime.now(UTC))
        await uow.commit()
    return ids


async def fail_and_retry(api: Api, run: Run, **found: Any) -> int:
    """Let the first task fail once and wait for its second attempt; return that one's id.

    ``found``: what its worker has found.
    """
    now = datetime.now(UTC)
    first = replace(
        run.attempts["fetch"],
        state=TaskState.FAILED,
        worker="w1",
        exit_code=3,
        reason="exit status 3",
        queued_at=now,
        started_at=now,
        finished_at=now,
        **found,
    )
    second = Attempt("fetch", 2, failures=1)
    started = Decision(
        attempts={("fetch", 1): first, ("fetch", 2): second},
        state=WorkflowState.RUNNING,
        previous=WorkflowState.QUEUED,
        started_at=now,
    )
    ids = await save(api, run, started)
    return next(iter(ids.values()))


async def set_state(api: Api, run: Run, state: TaskState, worker: str | None) -> dict[str, Any]:
    """Bring the task ``fetch`` into a state; return it as the API shows it."""
    finished = None if state in (TaskState.CLAIMED, TaskState.RUNNING) else datetime.now(UTC)
    attempt = replace(run.attempts["fetch"], state=state, worker=worker, finished_at=finished)
    decision = Decision(attempts={("fetch", 1): attempt})
    run.apply(decision)
    async with api.services.store.unit_of_work() as uow:
        await uow.instances.save([(run, decision)], datetime.now(UTC))
        await uow.commit()
    return await first_task(api, run)


async def first_task(api: Api, run: Run) -> dict[str, Any]:
    shown = await api.client.get(f"{PREFIX}/instances/{run.id}")
    task: dict[str, Any] = shown.json()["tasks"][0]
    return task


def log_of(task: dict[str, Any]) -> str:
    return f"{PREFIX}/task-instances/{task['id']}/log"
