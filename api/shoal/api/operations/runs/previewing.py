"""What a request would do to a run now: the decision that its master would make, not stored."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from shoal.core.decide import decide
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.events import request_of
from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import UnitOfWork


@dataclass(frozen=True)
class TouchedTask:
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
    tasks: list[TouchedTask] | None = None


async def preview(uow: UnitOfWork, command: NewCommand, at: datetime) -> Preview:
    """Return what a request about an instance would do to it as it is stored now."""
    assert command.instance_id is not None, "it is about an instance"
    if command.type is CommandType.RERUN:
        return Preview(state=WorkflowState.QUEUED)  # of another instance; this one stays
    run = await uow.instances.run(command.instance_id)
    decision = await asyncio.to_thread(decide, run, request_of(command, at))
    if decision.refusal is not None:
        return Preview(refusal=decision.refusal)
    return Preview(None, decision.state or run.state, list(_touched(run, decision)))


def _touched(run: Run, decision: Decision) -> list[TouchedTask]:
    after = {task: attempt for (task, _), attempt in sorted(decision.attempts.items(), key=_number)}
    return [
        TouchedTask(task, run.attempts[task].state, after[task].state, _ends_early(after[task]))
        for task in run.plan.tasks
        if task in after
    ]


def _number(item: tuple[tuple[str, int], Attempt]) -> int:
    return item[0][1]


def _ends_early(attempt: Attempt) -> bool:
    return attempt.termination is not None and not attempt.finished
