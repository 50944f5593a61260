"""Decisions in the database: all or nothing, guarded, with their history."""

from dataclasses import replace

import pytest

from shoal.core.decide import decide
from shoal.core.runs.events import (
    Begun,
    RecoverRequested,
    StopRequested,
    TaskClaimed,
    TaskEnded,
    TaskStarted,
)
from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.sql import Database
from shoal.sql.errors import BrokenReference, StaleRow
from tests.integration.sql.given import (
    LATER,
    NOW,
    adopt_ids,
    created,
    definition,
    published,
    stored,
)

S, W = TaskState, WorkflowState


async def _begun(database: Database, *tasks: str) -> Run:
    (run,) = await created(database, await published(database, definition(tasks=tasks)))
    await stored(database, run, Begun(NOW))
    return run


async def _loaded(database: Database, run: Run) -> Run:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.instances.run(run.id)


async def _finish(database: Database, run: Run, task: str, signal: TaskSignal) -> None:
    task_id = run.attempts[task].id or 0
    await stored(database, run, TaskClaimed(task_id, "w1", NOW))
    await stored(database, run, TaskStarted(task_id, "w1", NOW))
    await stored(database, run, TaskEnded(task_id, signal, LATER, "w1"))


async def test_stored_run_equals_the_one_in_memory_after_every_event(database: Database) -> None:
    run = await _begun(database, "a", "b")
    a, b = (attempt.id or 0 for attempt in run.attempts.values())
    for event in (
        TaskClaimed(a, "w1", NOW),
        TaskStarted(a, "w1", NOW),
        TaskClaimed(b, "w2", NOW),
        TaskEnded(a, TaskSignal.SUCCEED, LATER, "w1", exit_code=0),
        TaskEnded(b, TaskSignal.FAIL, LATER, "w2", "exit status 9", 9, NOW),
        RecoverRequested(LATER),
    ):
        await stored(database, run, event)
        assert await _loaded(database, run) == run
    assert run.attempts["b"].number == 2


async def test_recovered_instance_is_not_finished_and_keeps_its_start(database: Database) -> None:
    run = await _begun(database, "a")
    await _finish(database, run, "a", TaskSignal.FAIL)
    async with database.unit_of_work(read_only=True) as uow:
        failed = await uow.instances.get(run.id)
    assert (failed.state, failed.started_at, failed.finished_at) == (W.FAILED, NOW, LATER)
    assert failed.reason is not None
    await stored(database, run, RecoverRequested(LATER))
    async with database.unit_of_work(read_only=True) as uow:
        recovered = await uow.instances.get(run.id)
    assert (recovered.state, recovered.started_at) == (W.RUNNING, NOW)
    assert (recovered.finished_at, recovered.reason) == (None, None)


async def test_new_attempts_get_ids_that_are_returned(database: Database) -> None:
    run = await _begun(database, "a", "b")
    old = run.attempts["a"].id
    for task in ("a", "b"):
        await _finish(database, run, task, TaskSignal.FAIL)
    decision = decide(run, RecoverRequested(LATER))
    run.apply(decision)
    async with database.unit_of_work() as uow:
        ids = await uow.instances.save([(run, decision)], LATER)
        await uow.commit()
    assert set(ids) == {(run.id, "a", 2), (run.id, "b", 2)}
    assert old not in ids.values()
    adopt_ids(run, ids)
    assert await _loaded(database, run) == run


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED, S.KILLED, S.LOST, S.SKIPPED])
async def test_final_attempt_never_changes(database: Database, state: TaskState) -> None:
    run = await _begun(database, "a", "b")
    final = replace(run.attempts["a"], state=state, finished_at=NOW, reason="first")
    other = replace(run.attempts["b"], state=S.CLAIMED, worker="w")
    async with database.unit_of_work() as uow:
        await uow.instances.save([(run, Decision(attempts={("a", 1): final}))], NOW)
        await uow.commit()
    for later in (S.RUNNING, S.SUCCEEDED if state is S.FAILED else S.FAILED, state):
        changed = replace(final, state=later, reason="second", finished_at=LATER)
        async with database.unit_of_work() as uow:
            both = {("b", 1): other, ("a", 1): changed}
            with pytest.raises(StaleRow, match="task_instance") as caught:
                await uow.instances.save([(run, Decision(attempts=both))], LATER)
        assert final.id in caught.value.ids
    after = await _loaded(database, run)
    assert after.attempts["a"] == final
    assert after.attempts["b"] == run.attempts["b"]


async def test_instance_changes_only_from_the_state_decided_upon(database: Database) -> None:
    """Two masters that both believe in RUNNING: the second one's write fails."""
    run = await _begun(database, "a")
    other = await _loaded(database, run)
    await stored(database, run, StopRequested(LATER))
    assert run.state is W.STOPPED
    with pytest.raises(StaleRow, match="workflow_instance") as caught:
        await _save(
            database, other, Decision(state=W.SUCCEEDED, previous=W.RUNNING, finished_at=LATER)
        )
    assert caught.value.ids == {run.id}
    assert (await _loaded(database, run)).state is W.STOPPED


async def test_stale_run_takes_its_whole_batch_down(database: Database) -> None:
    workflow_id = await published(database)
    good, stale = await created(database, workflow_id, 2)
    await stored(database, _copy(stale), Begun(NOW))
    changes = []
    for run in (good, stale):
        decision = decide(run, Begun(LATER))
        run.apply(decision)
        changes.append((run, decision))
    async with database.unit_of_work() as uow:
        with pytest.raises(StaleRow) as caught:
            await uow.instances.save(changes, LATER)
    assert caught.value.ids
    assert (await _loaded(database, good)).state is W.QUEUED


def _copy(run: Run) -> Run:
    """A second copy in memory, as another master has it."""
    return replace(run, attempts=dict(run.attempts))


async def _save(database: Database, run: Run, decision: Decision) -> None:
    async with database.unit_of_work() as uow:
        await uow.instances.save([(run, decision)], LATER)
        await uow.commit()


async def test_every_change_has_its_event_in_the_same_transaction(database: Database) -> None:
    run = await _begun(database, "a")
    a = run.attempts["a"].id
    await _finish(database, run, "a", TaskSignal.SUCCEED)
    async with database.unit_of_work(read_only=True) as uow:
        events = await uow.events.after(0, 100, instance_id=run.id)
    told = [(e.kind, e.data["state"], e.task_instance_id) for e in events]
    assert told == [
        ("instance.state", "QUEUED", None),
        ("instance.state", "RUNNING", None),
        ("task.state", "QUEUED", a),
        ("task.state", "CLAIMED", a),
        ("task.state", "RUNNING", a),
        ("instance.state", "SUCCEEDED", None),
        ("task.state", "SUCCEEDED", a),
    ]
    assert {e.project for e in events} == {"demo"}
    assert events[3].data == {
        "workflow": "flow",
        "task": "a",
        "attempt": 1,
        "state": "CLAIMED",
        "worker": "w1",
    }
    assert events[5].data["previous"] == "RUNNING"
    assert (events[0].at, events[-1].at) == (NOW, LATER)


async def test_what_was_rolled_back_left_no_event(database: Database) -> None:
    run = await _begun(database, "a")
    async with database.unit_of_work(read_only=True) as uow:
        before = await uow.events.last_id()
    decision = decide(run, StopRequested(LATER))
    async with database.unit_of_work() as uow:
        await uow.instances.save([(run, decision)], LATER)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.events.after(before, 10) == []
        assert (await uow.instances.run(run.id)) == run


async def test_new_attempt_of_an_unknown_instance_is_refused(database: Database) -> None:
    run = await _begun(database, "a")
    ghost = replace(run, id=12345, attempts=dict(run.attempts))
    with pytest.raises(BrokenReference):
        await _save(database, ghost, Decision(attempts={("a", 2): Attempt("a", 2)}))
    with pytest.raises(StaleRow):
        await _save(database, ghost, Decision(state=W.STOPPED, previous=W.RUNNING))


async def test_saving_nothing_is_allowed(database: Database) -> None:
    async with database.unit_of_work() as uow:
        assert await uow.instances.save([], NOW) == {}
