"""Concurrency groups: slots are given in order, to as many as there are, whichever master asks."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.fields import Priority
from shoal.core.runs.events import Begun, PauseRequested, ResumeRequested, SlotGranted, TaskEnded
from shoal.core.runs.quarantine import ItemKind, QuarantinedItem
from shoal.core.runs.run import Run
from shoal.core.runs.states import TaskSignal, TaskState
from shoal.sql import Database
from shoal.sql.errors import ConcurrencyGroupInUse, NotFound, StaleRow
from shoal.sql.repositories.definitions.concurrency import ConcurrencyGroup
from shoal.sql.repositories.runs.slots import Shortage
from tests.integration.sql.given import LATER, NOW, created, definition, published, stored

GROUP = "demo/gpu"


async def put(
    database: Database, slots: int, name: str = "gpu", project: str = "demo"
) -> tuple[ConcurrencyGroup, bool]:
    async with database.unit_of_work() as uow:
        done = await uow.concurrency.put(project, name, slots, f"about {name}", NOW)
        await uow.commit()
    return done


async def give(database: Database, group: str = GROUP) -> list[int]:
    async with database.unit_of_work() as uow:
        given = await uow.slots.give(group, NOW)
        await uow.commit()
    return [slot.task_instance_id for slot in given]


async def waiting(database: Database, count: int = 1, **fields: int) -> list[Run]:
    """Start runs of one task each that waits for a slot."""
    spec = definition(tasks=["a"])
    task = spec.tasks[0].model_copy(update={"concurrency_group": "gpu"})
    workflow_id = await published(database, spec.model_copy(update={"tasks": (task,)}))
    runs = await created(database, workflow_id, count, **fields)
    for run in runs:
        await stored(database, run, Begun(NOW))
        assert run.attempts["a"].state is TaskState.BLOCKED
    return runs


def ids(runs: Sequence[Run]) -> list[int]:
    return [attempt_id(run) for run in runs]


def attempt_id(run: Run) -> int:
    found = run.attempts["a"].id
    assert found is not None
    return found


async def take(database: Database, run: Run) -> None:
    """The attempt goes on with the slot that it was given."""
    async with database.unit_of_work() as uow:
        await uow.slots.require([attempt_id(run)])
        await uow.commit()
    await stored(database, run, SlotGranted(attempt_id(run), NOW))
    assert run.attempts["a"].state is TaskState.QUEUED


async def test_slots_go_to_the_first_and_no_further(database: Database) -> None:
    await put(database, 2)
    low = await waiting(database, 2, priority=3)
    high = await waiting(database, 2, priority=1)
    assert await give(database) == ids(high)
    assert await give(database) == []
    async with database.unit_of_work(read_only=True) as uow:
        group = await uow.concurrency.get("demo", "gpu")
        assert (group.slots, group.taken, group.waiting) == (2, 2, 2)
        given = [slot.task_instance_id for slot in await uow.slots.given([GROUP])]
        assert sorted(given) == sorted(ids(high))
        assert [one.task_instance_id for one in await uow.concurrency.holders("demo", "gpu")] == (
            ids(high)
        )
        waiters = await uow.concurrency.waiters("demo", "gpu")
    assert [one.task_instance_id for one in waiters] == ids(low)
    assert {(one.workflow, one.task, one.granted_at) for one in waiters} == {("flow", "a", None)}


async def test_order_is_that_of_the_queue(database: Database) -> None:
    """Priority of the workflow, instance, priority of the task, task instance."""
    await put(database, 3)
    spec = definition(tasks=["a", "b", "c"])
    tasks = [t.model_copy(update={"concurrency_group": "gpu"}) for t in spec.tasks]
    tasks[2] = tasks[2].model_copy(update={"priority": Priority.HIGHEST})
    workflow_id = await published(database, spec.model_copy(update={"tasks": tuple(tasks)}))
    first, second = await created(database, workflow_id, 2)
    for run in (second, first):
        await stored(database, run, Begun(NOW))
    (urgent,) = await created(database, workflow_id, 1, priority=0)
    await stored(database, urgent, Begun(NOW))
    order = [run.attempts[t].id for run in (urgent, first, second) for t in ("c", "a", "b")]
    given: list[int | None] = []
    for slots in (2, 4, 9):
        await put(database, slots)
        given += await give(database)
    assert given == order


@pytest.mark.parametrize("signal", [TaskSignal.SUCCEED, TaskSignal.FAIL, TaskSignal.LOSE])
async def test_slot_ends_with_its_attempt(database: Database, signal: TaskSignal) -> None:
    await put(database, 1)
    first, second = await waiting(database, 2)
    assert await give(database) == ids([first])
    await take(database, first)
    run = first.attempts["a"]
    first.replace([replace(run, state=TaskState.RUNNING, worker="w")])
    await stored(database, first, TaskEnded(attempt_id(first), signal, LATER, worker="w"))
    # One that was lost has a new attempt, whose instance is the first in the order.
    follower = first if signal is TaskSignal.LOSE else second
    assert await give(database) == ids([follower])
    assert await give(database) == []


async def test_slot_of_a_paused_attempt_is_free_and_not_its_own_any_more(
    database: Database,
) -> None:
    await put(database, 1)
    first, second = await waiting(database, 2)
    await give(database)
    await take(database, first)
    await stored(database, first, PauseRequested(NOW))
    assert first.attempts["a"].state is TaskState.PAUSED
    assert await give(database) == ids([second])
    resumed = (await stored(database, first, ResumeRequested(NOW))).attempts["a", 1]
    assert resumed.state is TaskState.BLOCKED
    async with database.unit_of_work() as uow:
        with pytest.raises(StaleRow, match="concurrency_lease"):
            await uow.slots.require(ids([first]))
    assert await give(database) == []


async def test_paused_attempt_finds_its_slot_again_if_nobody_took_it(database: Database) -> None:
    await put(database, 1)
    first, second = await waiting(database, 2)
    await give(database)
    await take(database, first)
    await stored(database, first, PauseRequested(NOW))
    await stored(database, first, ResumeRequested(NOW))
    assert await give(database) == []
    await take(database, first)
    async with database.unit_of_work(read_only=True) as uow:
        (holder,) = await uow.concurrency.holders("demo", "gpu")
    assert holder.task_instance_id == attempt_id(first)
    assert attempt_id(second) not in await give(database)


async def test_slots_change_at_once_and_fewer_end_nothing(database: Database) -> None:
    await put(database, 3)
    await waiting(database, 5)
    assert len(await give(database)) == 3
    await put(database, 1)
    async with database.unit_of_work(read_only=True) as uow:
        group = await uow.concurrency.get("demo", "gpu")
    assert (group.slots, group.taken) == (1, 3)
    assert await give(database) == []
    await put(database, 4)
    assert len(await give(database)) == 1


async def test_many_who_give_at_once_give_each_slot_once(database: Database) -> None:
    await put(database, 3)
    await waiting(database, 12)
    given = await asyncio.gather(*(give(database) for _ in range(8)))
    assert sorted(map(len, given)) == [0] * 7 + [3]


async def test_giving_slots_waits_for_another_giver(database: Database) -> None:
    await put(database, 1)
    await waiting(database, 2)
    async with database.unit_of_work() as uow:
        assert len(await uow.slots.give(GROUP, NOW)) == 1
        second = asyncio.create_task(give(database))
        done, _ = await asyncio.wait([second], timeout=0.2)
        assert not done
        await uow.commit()
    assert await second == []


async def test_slot_that_is_being_taken_is_not_taken_back(postgresql_copy: str) -> None:
    """Between the check and the commit of the attempt's next state nobody deletes its lease."""
    async with Database(postgresql_copy) as database:  # SQLite has one writer at a time
        await put(database, 1)
        first, second = await waiting(database, 2)
        await give(database)
        await take(database, first)
        await stored(database, first, PauseRequested(NOW))
        async with database.unit_of_work() as uow:
            await uow.slots.require(ids([first]))
            assert await give(database) == []
            await uow.commit()
        assert await give(database) == ids([second])


async def test_what_stands_in_short_supply_is_known(database: Database) -> None:
    await put(database, 2)
    await put(database, 1, "idle")
    wanted = [GROUP, "demo/idle", "demo/none"]

    async def look() -> dict[str, Shortage]:
        async with database.unit_of_work(read_only=True) as uow:
            return await uow.slots.shortages(wanted)

    nothing = {
        GROUP: Shortage(exists=True),
        "demo/idle": Shortage(exists=True),
        "demo/none": Shortage(exists=False),
    }
    assert await look() == nothing
    await waiting(database, 3)
    assert await look() == {**nothing, GROUP: Shortage(exists=True, is_free=True)}
    await give(database)
    assert await look() == nothing


async def test_group_that_is_gone_gives_nothing(database: Database) -> None:
    assert await give(database, "demo/none") == []


# -- groups as objects -----------------------------------------------------------------------


async def test_group_is_made_and_changed(database: Database) -> None:
    made, is_new = await put(database, 2)
    assert is_new
    assert made == ConcurrencyGroup("demo", "gpu", "about gpu", 2, NOW, taken=0, waiting=0)
    changed, is_new = await put(database, 5)
    assert (changed.slots, is_new) == (5, False)
    done = await asyncio.gather(*(put(database, 1, "new") for _ in range(4)))
    assert sorted(is_new for _, is_new in done) == [False, False, False, True]


async def test_groups_are_listed_by_project_and_name(database: Database) -> None:
    for project, name in (("demo", "b"), ("demo", "a"), ("another", "z")):
        await put(database, 1, name, project)
    async with database.unit_of_work(read_only=True) as uow:
        names = [(one.project, one.name) for one in await uow.concurrency.list()]
        assert names == [("another", "z"), ("demo", "a"), ("demo", "b")]
        assert [one.name for one in await uow.concurrency.list("demo", limit=1)] == ["a"]
        assert [one.name for one in await uow.concurrency.list(None, ("demo", "a"))] == ["b"]


async def test_unknown_group_is_refused_with_the_definition(database: Database) -> None:
    await put(database, 1, project="another")
    spec = definition(tasks=["a", "b"])
    task = spec.tasks[1].model_copy(update={"concurrency_group": "gpu"})
    spec = spec.model_copy(update={"tasks": (spec.tasks[0], task)})
    with pytest.raises(InvalidDefinition) as caught:
        await published(database, spec)
    (problem,) = caught.value.problems
    assert problem.field == "tasks[1].concurrency_group"
    assert "`shoal concurrency set demo/gpu SLOTS`" in problem.message
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.workflow_list.page() == []


async def test_group_in_use_is_not_deleted(database: Database) -> None:
    await put(database, 1)
    await put(database, 1, "g_u")  # the name is not a pattern
    (run,) = await waiting(database)

    async def delete(name: str = "gpu") -> None:
        async with database.unit_of_work() as uow:
            await uow.concurrency.delete("demo", name)
            await uow.commit()

    await delete("g_u")
    with pytest.raises(ConcurrencyGroupInUse, match="used by the workflows flow;"):
        await delete()
    await published(database, definition(tasks=["a"]))
    with pytest.raises(ConcurrencyGroupInUse, match="1 tasks have slots"):
        await delete()
    await give(database)
    with pytest.raises(ConcurrencyGroupInUse, match="1 tasks have slots"):
        await delete()
    await take(database, run)
    await stored(database, run, PauseRequested(NOW))
    await delete()
    for lookup in ("get", "delete"):
        async with database.unit_of_work() as uow:
            with pytest.raises(NotFound, match="concurrency group demo/gpu"):
                await getattr(uow.concurrency, lookup)("demo", "gpu")


async def test_group_cannot_go_while_its_first_user_is_published(database: Database) -> None:
    await put(database, 1)
    spec = definition(tasks=["a"])
    task = spec.tasks[0].model_copy(update={"concurrency_group": "gpu"})

    async def delete() -> None:
        async with database.unit_of_work() as uow:
            await uow.concurrency.delete("demo", "gpu")
            await uow.commit()

    async with database.unit_of_work() as uow:
        await uow.workflows.publish(spec.model_copy(update={"tasks": (task,)}), NOW)
        deleting = asyncio.create_task(delete())
        done, _ = await asyncio.wait([deleting], timeout=0.2)
        assert not done
        await uow.commit()
    with pytest.raises(ConcurrencyGroupInUse, match="flow"):
        await deleting


async def quarantine(database: Database, run: Run) -> None:
    async with database.unit_of_work() as uow:
        item = QuarantinedItem(ItemKind.INSTANCE, str(run.id), run.partition, "why", 1, NOW)
        await uow.quarantine.put([item])
        await uow.commit()


async def repair(database: Database, run: Run) -> frozenset[int]:
    """Let a run leave quarantine; return the queued attempts that have lost their slots."""
    async with database.unit_of_work() as uow:
        await uow.quarantine.remove([(ItemKind.INSTANCE, str(run.id))])
        lost = (await uow.slots.without_lease([run.id])).get(run.id, frozenset())
        await uow.commit()
    return lost


async def test_quarantined_run_gets_no_slot(database: Database) -> None:
    await put(database, 1)
    bad, good = await waiting(database, 2)
    await quarantine(database, bad)
    assert await give(database) == ids([good])
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.concurrency.get("demo", "gpu")).waiting == 0


@pytest.mark.parametrize("is_taken", [False, True])
async def test_quarantined_run_keeps_no_slot(database: Database, is_taken: bool) -> None:
    await put(database, 1)
    bad, good, last = await waiting(database, 3)
    assert await give(database) == ids([bad])
    if is_taken:
        await take(database, bad)
    await quarantine(database, bad)
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.concurrency.get("demo", "gpu")).taken == 0
        assert (await uow.slots.shortages([GROUP]))[GROUP].is_free
    assert await give(database) == ids([good])
    lost = await repair(database, bad)
    assert lost == (frozenset(ids([bad])) if is_taken else frozenset())
    # It waits in line once more, in its place, and the group is not exceeded.
    await stored(database, bad, Begun(NOW, lost))
    assert bad.attempts["a"].state is TaskState.BLOCKED
    assert await give(database) == []
    async with database.unit_of_work() as uow:
        with pytest.raises(StaleRow):
            await uow.slots.require([attempt_id(bad)])
    await take(database, good)
    await stored(database, good, PauseRequested(NOW))
    assert await give(database) == ids([bad])
    assert last.attempts["a"].state is TaskState.BLOCKED


async def test_run_that_is_repaired_in_time_keeps_its_slot(database: Database) -> None:
    await put(database, 1)
    bad, _ = await waiting(database, 2)
    await give(database)
    await take(database, bad)
    await quarantine(database, bad)
    assert await repair(database, bad) == frozenset()
    assert await give(database) == []
