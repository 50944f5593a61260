"""Actions go out in order, one call at a time, beside what the engine does."""

import asyncio
from datetime import UTC, datetime

import pytest

from shoal.core.definition.model import WorkflowSpec
from shoal.core.errors import ShoalError
from shoal.core.runs.run import Attempt, Enqueue, Run, WakeAt, WorkflowPlan
from shoal.core.runs.states import WorkflowState
from shoal.master.engine.actions import ActionQueue, Performed
from tests.support.waiting import eventually

NOW = datetime(2026, 3, 2, tzinfo=UTC)
TASK = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
PLAN = WorkflowPlan.of(WorkflowSpec.model_validate({"name": "w", "tasks": [TASK]}))
FIRST, SECOND = Enqueue(("a", 1)), WakeAt(NOW)


def run(number: int, partition: int = 0) -> Run:
    attempts = {"a": Attempt("a", 1)}
    return Run(number, PLAN, WorkflowState.RUNNING, partition, attempts, NOW, NOW)


class Performer:
    """Performs as slowly as the test likes."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[int, object]]] = []
        self.gate = asyncio.Event()

    async def __call__(self, performed: Performed) -> None:
        self.calls.append([(one.id, action) for one, actions in performed for action in actions])
        await self.gate.wait()


async def test_what_comes_during_a_call_goes_out_in_order_with_the_next_one() -> None:
    performer = Performer()
    action_queue = ActionQueue(performer, {0})
    work = asyncio.create_task(action_queue.run())
    action_queue.add(run(1), (FIRST, SECOND))
    await eventually(lambda: performer.calls)
    for number in (2, 3, 2):
        action_queue.add(run(number), (FIRST,))
    action_queue.add(run(4), ())
    assert len(performer.calls) == 1
    performer.gate.set()
    await eventually(lambda: len(performer.calls) == 2)
    assert performer.calls == [
        [(1, FIRST), (1, SECOND)],
        [(2, FIRST), (3, FIRST), (2, FIRST)],
    ]
    work.cancel()


async def test_actions_of_a_partition_that_was_given_up_stay_here() -> None:
    performer, partitions = Performer(), {0, 1}
    performer.gate.set()
    action_queue = ActionQueue(performer, partitions)
    action_queue.add(run(1, partition=0), (FIRST,))
    action_queue.add(run(2, partition=1), (FIRST,))
    partitions.remove(0)
    work = asyncio.create_task(action_queue.run())
    await eventually(lambda: performer.calls)
    assert performer.calls == [[(2, FIRST)]]
    work.cancel()


async def test_each_run_is_noted_of_by_what_became_of_its_actions() -> None:
    class Away(ShoalError):
        retriable = True

    noted: list[tuple[int, str]] = []
    trouble: dict[int, Exception] = {1: ValueError("beyond us")}

    async def perform(performed: Performed) -> None:
        for one, _ in performed:
            if one.id in trouble:
                raise trouble[one.id]

    action_queue = ActionQueue(
        perform,
        {0},
        on_failure=lambda one, error: noted.append((one.id, str(error))),
        on_success=lambda one: noted.append((one.id, "performed")),
    )
    work = asyncio.create_task(action_queue.run())
    action_queue.add(run(1), (FIRST,))
    action_queue.add(run(2), (FIRST,))
    action_queue.add(run(3), ())
    action_queue.add(run(4), (), on_trial=True)
    await eventually(lambda: len(noted) == 3)
    assert noted == [(1, "beyond us"), (2, "performed"), (4, "performed")]
    trouble[1] = Away("nothing is there")  # for which the run is not to blame
    action_queue.add(run(1), (FIRST,))
    await eventually(lambda: noted[3:] == [(1, "performed")])
    work.cancel()


async def test_call_is_about_so_many_actions_unless_one_run_has_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shoal.master.engine.actions.MOST_ACTIONS", 3)
    performer = Performer()
    performer.gate.set()
    action_queue = ActionQueue(performer, {0})
    for number, actions in ((1, 2), (2, 1), (3, 1), (4, 5), (5, 1)):
        action_queue.add(run(number), (FIRST,) * actions)
    work = asyncio.create_task(action_queue.run())
    await eventually(lambda: sum(map(len, performer.calls)) == 10)
    assert [[number for number, _ in call] for call in performer.calls] == [
        [1, 1, 2],
        [3],
        [4] * 5,
        [5],
    ]
    work.cancel()
