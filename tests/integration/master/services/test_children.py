"""Sub-workflows and MAP with a real engine, scanner and database; masters die between messages."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select, text, update

from shoal.core.access.grants import Grant
from shoal.core.runs.commands import Command, CommandState, CommandType
from shoal.core.runs.events import RecoverRequested
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.records import TaskInstance
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskSignal, TaskState, WorkflowState
from shoal.master.engine.messages import DEEPEST
from shoal.runtime import failpoints
from shoal.sql import Database
from shoal.sql.schema.tables import command
from tests.integration.master.conftest import give
from tests.integration.master.services.family_harness import PARTITIONS, Harness, Master
from tests.support.clock import utc_now
from tests.support.database.databases import migrated, migrated_url

W = WorkflowState
START, PAUSE, RESUME = CommandType.START, CommandType.PAUSE, CommandType.RESUME
STOP, RECOVER = CommandType.STOP, CommandType.RECOVER
SUCCEED = TaskSignal.SUCCEED

on_both = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    """SQLite, where a test does not ask for both."""
    url = migrated_url(request, getattr(request, "param", "sqlite"))
    async with migrated(url, PARTITIONS) as found:
        yield found


@pytest.fixture
def harness(database: Database) -> Harness:
    return Harness(database)


def sub(workflow: str, **params: Any) -> dict[str, Any]:
    return {"type": "SUB_WORKFLOW", "params": {"workflow": workflow, **params}}


async def three_levels(harness: Harness) -> int:
    """Publish top, mid and leaf; return the id of top."""
    await harness.publish("leaf", {"x": {}, "y": {}})
    await harness.publish("mid", {"a": {}, "s": sub("leaf") | {"depends_on": ["a"]}})
    return await harness.publish("top", {"s": sub("mid"), "after": {"depends_on": ["s"]}})


class Failing:
    """Tasks end well but one, which fails so many times."""

    def __init__(self, task: str, times: int) -> None:
        self.task, self.times = task, times
        self.runs: Counter[tuple[int, str]] = Counter()

    def __call__(self, task: TaskInstance) -> TaskSignal:
        self.runs[task.workflow_instance_id, task.task] += 1
        if task.task == self.task and self.times > 0:
            self.times -= 1
            return TaskSignal.FAIL
        return TaskSignal.SUCCEED


@on_both
async def test_recovery_of_the_parent_runs_only_what_failed_two_levels_below(
    harness: Harness, database: Database
) -> None:
    workflow = await three_levels(harness)
    fate = Failing("x", 1)
    async with Master(database).working() as master:
        await harness.send(START, workflow)
        await master.run(fate)
        top, mid, leaf = await harness.instances()
        assert (top.state, mid.state, leaf.state) == (W.FAILED, W.FAILED, W.FAILED)
        task = await harness.task(top, "s")
        assert task.reason == f"instance {mid.id} FAILED: 1 task failed"
        recover = await harness.ask(RECOVER, top)
        await master.run(fate)
        assert (await harness.command(recover)).state is CommandState.DONE
    assert await harness.states() == {w: [W.SUCCEEDED] for w in ("top", "mid", "leaf")}
    assert fate.runs == {
        (top.id, "after"): 1,
        (mid.id, "a"): 1,
        (leaf.id, "x"): 2,
        (leaf.id, "y"): 1,
    }
    task = await harness.task(top, "s")
    assert task.detail["children"]["0"]["instance"] == mid.id
    mid = (await harness.instances("mid"))[0]
    assert mid.parent is not None
    assert (mid.parent.instance_id, mid.parent.task_instance_id) == (top.id, task.id)
    assert (mid.parent.depth, mid.parent.ask) == (1, 1)


async def test_child_is_for_the_same_time_and_as_urgent_as_its_parent(
    harness: Harness, database: Database
) -> None:
    await harness.publish("leaf", {"x": {}}, parameters={"p": "", "q": "d"}, timezone="Asia/Tokyo")
    top = await harness.publish(
        "top",
        {"s": sub("leaf", parameters={"p": "$[yyyyMMdd] ${v} $$"})},
        parameters={"v": {}},
        timezone="Europe/Berlin",
    )
    at = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    async with Master(database).working() as master:
        await harness.send(
            START, top, logical_time=at, priority=0, parameters={"v": "$${q} $$[y]"}, backfill_id=7
        )
        await master.run()
    (child,) = await harness.instances("leaf")
    assert (child.logical_time, child.timezone, child.priority) == (at, "Europe/Berlin", 0)
    assert child.backfill_id == 7
    assert child.startup == {"p": "20260302 $${q} $$[y] $$"}, "values, taken as they are"


@on_both
async def test_labels_come_from_the_start_the_parent_and_the_workflow_in_this_order(
    harness: Harness, database: Database
) -> None:
    await harness.publish("leaf", {"x": {}}, labels={"of": "leaf", "tier": "2", "env": "test"})
    top = await harness.publish("top", {"s": sub("leaf")}, labels={"of": "top", "team": "a"})
    async with Master(database).working() as master:
        await harness.send(START, top, labels={"env": "prod", "of": "start"})
        await master.run()
        (first,) = await harness.instances("top")
        async with database.unit_of_work() as uow:
            await uow.labels.change(first.id, {"env": None, "seen": "yes"}, utc_now())
            await uow.commit()
        await harness.ask(CommandType.RERUN, first)
        await master.run()
    first, again = await harness.instances("top")
    leaf, leaf_again = await harness.instances("leaf")
    async with database.unit_of_work(read_only=True) as uow:
        labels = await uow.labels.of([first.id, again.id, leaf.id, leaf_again.id])
    assert labels[leaf.id] == {"env": "prod", "of": "start", "team": "a", "tier": "2"}
    changed = {"of": "start", "seen": "yes", "team": "a"}
    assert labels[first.id] == labels[again.id] == changed
    assert labels[leaf_again.id] == {**changed, "tier": "2", "env": "test"}


@pytest.mark.parametrize(
    ("child", "params", "why"),
    [
        ({}, {"workflow": "nobody"}, "there is no workflow default/nobody"),
        ({}, {"version": 9}, "version 9"),
        ({}, {"parameters": {"p": "1"}}, "no such parameter"),
        (
            {"parameters": {"p": {"type": "integer"}}},
            {"parameters": {"p": "z"}},
            "'z' is not a valid int",
        ),
        ({"overlap": "skip_new"}, {}, "skip_new"),
    ],
)
async def test_child_that_is_refused_fails_its_task_with_the_reason(
    harness: Harness, database: Database, child: dict[str, Any], params: dict[str, Any], why: str
) -> None:
    leaf = await harness.publish("leaf", {"x": {}}, **child)
    top = await harness.publish(
        "top", {"s": sub("leaf") | {"params": {"workflow": "leaf"} | params}}
    )
    async with Master(database).working() as master:
        if "overlap" in child:
            await harness.send(START, leaf)
            await master.poll()
        await harness.send(START, top)
        await master.poll()
    (parent,) = await harness.instances("top")
    task = await harness.task(parent, "s")
    assert (parent.state, task.state) == (W.FAILED, TaskState.FAILED)
    assert task.reason is not None
    assert task.reason.startswith("the sub-workflow could not be started: ")
    assert why in task.reason


@pytest.mark.parametrize("kind", ["SUB_WORKFLOW", "MAP"])
async def test_workflow_of_another_project_runs_only_if_that_lets_it(
    harness: Harness, database: Database, kind: str
) -> None:
    params: dict[str, Any] = {"workflow": "leaf", "project": "theirs"}
    params |= {"items": ["one"]} if kind == "MAP" else {}
    await harness.publish("leaf", {"x": {}}, project="theirs", parameters={"item": "none"})
    top = await harness.publish("top", {"s": {"type": kind, "params": params}}, project="ours")
    await give(database, "theirs", "ours", Grant.SEE)  # which is too little
    await give(database, "theirs", "others", Grant.RUN)
    async with Master(database).working() as master:
        await harness.send(CommandType.START, top)
        await master.run()
        (first,) = await harness.instances()
        assert first.state is W.FAILED
        refused = (await harness.task(first, "s")).reason
        assert refused is not None
        assert "there is no workflow theirs/leaf that project ours may run" in refused
        await give(database, "theirs", "ours", Grant.RUN)
        await harness.send(CommandType.START, top)
        await master.run()
    assert await harness.states() == {"top": [W.FAILED, W.SUCCEEDED], "leaf": [W.SUCCEEDED]}


async def test_workflow_that_runs_itself_ends_at_the_deepest_level(
    harness: Harness, database: Database
) -> None:
    top = await harness.publish("top", {"s": sub("top")})
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.run()
    instances = await harness.instances()
    assert [one.state for one in instances] == [W.FAILED] * (1 + DEEPEST)
    deepest = await harness.task(instances[-1], "s")
    assert "nested deeper than 20 levels" in (deepest.reason or "")


@on_both
async def test_pause_reaches_a_child_that_was_not_there_yet(
    harness: Harness, database: Database
) -> None:
    await harness.publish("leaf", {"x": {}})
    workflow = await harness.publish("top", {"s": sub("leaf")})
    async with Master(database).working() as master:
        await harness.send(START, workflow)
        await master.scanner.scan(range(PARTITIONS))
        (top,) = await harness.instances("top")
        await master.hear()
        assert await harness.pending(START)
        await harness.ask(PAUSE, top)
        await master.poll()
        assert await harness.states() == {"top": [W.PAUSED], "leaf": [W.PAUSED]}
        await harness.ask(RESUME, top)
        await master.run()
    assert await harness.states() == {"top": [W.SUCCEEDED], "leaf": [W.SUCCEEDED]}


async def quarantined_start(harness: Harness, master: Master) -> Command:
    """Start top, whose child's START is then quarantined; return it."""
    await harness.publish("leaf", {"x": {}})
    await harness.send(START, await harness.publish("top", {"s": sub("leaf")}))
    await master.scanner.scan(range(PARTITIONS))
    await master.hear()
    (start,) = await harness.pending(START)
    master.engine.quarantine.put(ItemKind.COMMAND, start.id, start.partition, ValueError("bad"))
    return start


async def test_stop_ends_although_the_start_of_a_child_is_quarantined(
    harness: Harness, database: Database
) -> None:
    """The start is withdrawn: a later retry must not run a child of what was stopped."""
    async with Master(database).working() as master:
        start = await quarantined_start(harness, master)
        (top,) = await harness.instances("top")
        await harness.ask(STOP, top)
        await master.poll()
        assert await harness.states() == {"top": [W.STOPPED]}
        settled = await harness.command(start)
        assert (settled.state, settled.reason) == (
            CommandState.REFUSED,
            "its parent was stopped while it was quarantined",
        )
        assert not master.engine.quarantine.held(ItemKind.COMMAND)


async def publish_map(harness: Harness, items: int, parallel: int) -> int:
    """Publish top, whose task m is a MAP of leaf; return its id."""
    params = {"workflow": "leaf", "items": list(range(items)), "parallel": parallel}
    await harness.publish("leaf", {"x": {}}, parameters={"item": ""})
    return await harness.publish("top", {"m": {"type": "MAP", "params": params}})


async def first_child(harness: Harness) -> dict[str, Any]:
    """What task m of top knows of the child of its first item."""
    (top,) = await harness.instances("top")
    found: dict[str, Any] = (await harness.task(top, "m")).detail["children"]["0"]
    return found


async def until_quarantined(database: Database) -> None:
    """Wait until it is stored that something is quarantined."""
    while True:
        async with database.unit_of_work(read_only=True) as uow:
            if await uow.quarantine.count():
                return
        await asyncio.sleep(0.01)


@on_both
async def test_quarantined_child_holds_no_place_in_the_window_of_a_map(
    harness: Harness, database: Database
) -> None:
    """Its parent hears of it with the quarantine, and again before the child is tried again."""
    top = await publish_map(harness, items=4, parallel=2)
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.poll()
        first, second = await harness.instances("leaf")
        engine = master.engine
        engine.quarantine_run(engine.runs[first.id], RuntimeError("beyond us"))
        await until_quarantined(database)
        await master.poll()
        assert len(await harness.instances("leaf")) == 3
        assert (await first_child(harness))["quarantined"]
        await harness.ask(RECOVER, first)
        await master.poll()
        assert "quarantined" not in await first_child(harness)
        async with database.unit_of_work(read_only=True) as uow:
            news = await uow.connection.rows(
                select(command.c.detail).where(command.c.type == CommandType.CHILD)
            )
        told = [(d["quarantined"], d["ask"]) for (d,) in news if "quarantined" in d]
        assert told == [(True, -1), (False, -1)]  # no request has this number
        assert len(await harness.instances("leaf")) == 3
        await master.work(lambda task: SUCCEED if task.workflow_instance_id == second.id else None)
        await master.poll()
        assert len(await harness.instances("leaf")) == 3  # the first and the third one have begun
        await master.run()
    assert await harness.states() == {"top": [W.SUCCEEDED], "leaf": [W.SUCCEEDED] * 4}


@on_both
async def test_quarantined_start_of_a_child_holds_no_place_in_the_window_of_a_map(
    harness: Harness, database: Database
) -> None:
    top = await publish_map(harness, items=3, parallel=1)
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.scanner.scan(range(PARTITIONS))
        await master.hear()
        (start,) = await harness.pending(START)
        quarantine = master.engine.quarantine
        quarantine.put(ItemKind.COMMAND, start.id, start.partition, ValueError("bad"))
        await until_quarantined(database)
        await master.poll()
        assert len(await harness.instances("leaf")) == 1
        assert await first_child(harness) == {"state": "STARTING", "quarantined": True}
        quarantine.try_again(ItemKind.COMMAND, start.id)
        await master.poll()
        assert len(await harness.instances("leaf")) == 2
        child = await first_child(harness)
        assert (child["state"], "quarantined" in child) == ("RUNNING", False)
        await master.run()
    assert await harness.states() == {"top": [W.SUCCEEDED], "leaf": [W.SUCCEEDED] * 3}


@on_both
async def test_new_attempt_hears_that_a_child_was_quarantined_before_it_took_its_request(
    harness: Harness, database: Database
) -> None:
    top = await publish_map(harness, items=2, parallel=1)
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.run(lambda _task: TaskSignal.FAIL)
        assert await harness.states() == {"top": [W.FAILED], "leaf": [W.FAILED] * 2}
        (parent,) = await harness.instances("top")
        await harness.ask(RECOVER, parent)
        await master.scanner.scan(range(PARTITIONS))
        (asked,) = await harness.pending(RECOVER)
        first, _ = await harness.instances("leaf")
        assert asked.instance_id == first.id
        quarantine, item = master.engine.quarantine, (ItemKind.INSTANCE, first.id)
        quarantine.put(*item, first.partition, RuntimeError("beyond us"))
        await until_quarantined(database)
        await master.poll()
        assert (await first_child(harness))["quarantined"]
        assert (await harness.states())["leaf"] == [W.FAILED, W.RUNNING]
        quarantine.passed(*item)
        master.scanner.notify(first.partition)
        await master.scanner.poll(is_regular=True)
        await master.run()
    assert await harness.states() == {"top": [W.SUCCEEDED], "leaf": [W.SUCCEEDED] * 2}


async def test_stop_ends_without_a_quarantined_child_which_stops_when_it_is_tried_again(
    harness: Harness, database: Database
) -> None:
    """No child starts in the place of the quarantined one meanwhile."""
    top = await publish_map(harness, items=3, parallel=1)
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.poll()
        (parent,) = await harness.instances("top")
        (child,) = await harness.instances("leaf")
        await harness.ask(STOP, parent)
        await master.scanner.scan(range(PARTITIONS))
        engine = master.engine
        engine.quarantine_run(engine.runs[child.id], RuntimeError("beyond us"))
        await until_quarantined(database)
        await master.poll()
        assert (await first_child(harness))["quarantined"]
        assert await harness.states() == {"top": [W.STOPPED], "leaf": [W.RUNNING]}
        reason = (await harness.task(parent, "m")).reason
        assert reason == f"ended without instance {child.id}, which is quarantined"
        await engine.submit(child.partition, child.id, RecoverRequested(utc_now()))
        await master.poll()
    assert await harness.states() == {"top": [W.STOPPED], "leaf": [W.STOPPED]}


async def test_requests_of_users_overtake_messages_to_a_quarantined_child(
    harness: Harness, database: Database
) -> None:
    """Else the recovery would wait for the stop, which waits for the recovery."""
    top = await publish_map(harness, items=1, parallel=1)
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.poll()
        (parent,) = await harness.instances("top")
        (child,) = await harness.instances("leaf")
        engine = master.engine
        engine.quarantine_run(engine.runs[child.id], RuntimeError("beyond us"))
        await until_quarantined(database)
        await harness.ask(STOP, parent)
        await master.poll()
        assert len(await harness.pending(STOP)) == 1
        pause = await harness.ask(PAUSE, child)
        recover = await harness.ask(RECOVER, child)
        await master.poll()
        refused, done = await harness.command(pause), await harness.command(recover)
        assert refused.state is CommandState.REFUSED
        assert f"shoal recover {child.id}" in (refused.reason or "")
        assert done.state is CommandState.DONE
    assert await harness.states() == {"top": [W.STOPPED], "leaf": [W.STOPPED]}


async def test_stop_that_waits_for_a_recovered_child_needs_no_regular_poll(
    harness: Harness, database: Database
) -> None:
    top = await publish_map(harness, items=1, parallel=1)
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.poll()
        (parent,) = await harness.instances("top")
        (child,) = await harness.instances("leaf")
        engine = master.engine
        engine.quarantine_run(engine.runs[child.id], RuntimeError("beyond us"))
        await until_quarantined(database)
        await harness.ask(STOP, parent)
        await master.poll()
        (stop,) = await harness.pending(STOP)
        await master.scanner.poll(is_regular=False)  # of what was notified before
        await harness.ask(RECOVER, child)
        master.scanner.notify(child.partition)
        await master.scanner.poll(is_regular=False)
        await master.scanner.poll(is_regular=False)
        assert (await harness.command(stop)).state is CommandState.DONE
        await master.hear()
    assert (await harness.states())["leaf"] == [W.STOPPED]


async def test_no_news_of_a_quarantine_follow_the_news_of_its_end(
    harness: Harness, database: Database
) -> None:
    """Else its parent would take a child for quarantined until that reports something else."""
    top = await publish_map(harness, items=1, parallel=1)
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.poll()
        (child,) = await harness.instances("leaf")
        quarantine, item = master.engine.quarantine, (ItemKind.INSTANCE, child.id)
        quarantine.put(*item, child.partition, RuntimeError("beyond us"))
        quarantine.try_again(*item)  # before that was stored
        other = ItemKind.INSTANCE, child.id + 1_000
        quarantine.put(*other, child.partition, RuntimeError("stored with it"))
        await until_quarantined(database)
        await master.poll()
        assert "quarantined" not in await first_child(harness)
        quarantine.passed(*item)
        await master.run()
    assert await harness.states() == {"top": [W.SUCCEEDED], "leaf": [W.SUCCEEDED]}


async def test_only_starts_of_children_have_parents_that_wait_for_them(
    harness: Harness, database: Database
) -> None:
    async with Master(database).working() as master:
        start = await quarantined_start(harness, master)
        (top,) = await harness.instances("top")
        await harness.ask(PAUSE, top)
        await master.scanner.scan(range(PARTITIONS))
        (asked,) = await harness.pending(PAUSE)
        async with database.unit_of_work(read_only=True) as uow:
            parents = await uow.commands.parents([*range(start.id + 1), asked.id])
    assert asked.parent is not None
    assert list(parents) == [start.id]


async def test_damaged_start_of_a_child_holds_up_no_other_request(
    harness: Harness, database: Database
) -> None:
    other_id = await harness.publish("other", {"x": {}})
    async with Master(database).working() as master:
        start = await quarantined_start(harness, master)
        await harness.send(START, other_id)
        await master.poll()
        async with database.unit_of_work() as uow:
            await uow.connection.execute(
                update(command).where(command.c.id == start.id).values(parameters=text("'{'"))
            )
            await uow.commit()
        (top,), (other,) = await harness.instances("top"), await harness.instances("other")
        asked = [await harness.ask(STOP, one) for one in (top, other)]
        for _ in range(3):  # the requests, the stop of the child, the refusal of its start
            await master.scanner.scan(range(PARTITIONS))
            await master.hear()
        assert [(await harness.command(one)).state for one in asked] == [CommandState.DONE] * 2
        assert await harness.states() == {"top": [W.STOPPED], "other": [W.STOPPED]}


@on_both
async def test_stop_of_the_parent_waits_for_the_grandchild_and_a_resume_goes_on(
    harness: Harness, database: Database
) -> None:
    workflow = await three_levels(harness)
    async with Master(database).working() as master:
        await harness.send(START, workflow)
        await master.poll()
        await master.work()  # mid's "a"
        await master.poll()
        await master.work(lambda _task: None)  # leaf's tasks are claimed
        top, mid, leaf = await harness.instances()
        await harness.ask(STOP, top)
        await master.poll()
        assert {s for (s,) in (await harness.states()).values()} == {W.STOPPING}
        assert (await harness.task(leaf, "x")).state is TaskState.CLAIMED
        await master.run(lambda _task: TaskSignal.KILL)
        assert {s for (s,) in (await harness.states()).values()} == {W.STOPPED}
        await harness.ask(RESUME, top)
        await master.run()
    assert {s for (s,) in (await harness.states()).values()} == {W.SUCCEEDED}
    assert (await harness.task(mid, "a")).attempt == 1


@on_both
async def test_child_that_waits_for_other_runs_is_known_and_starts_in_its_turn(
    harness: Harness, database: Database
) -> None:
    leaf = await harness.publish("leaf", {"x": {}}, overlap="queue")
    workflow = await harness.publish("top", {"s": sub("leaf")})
    async with Master(database).working() as master:
        await harness.send(START, leaf)
        await master.poll()
        await harness.send(START, workflow)
        await master.poll()
        (top,) = await harness.instances("top")
        first, second = await harness.instances("leaf")
        child = (await harness.task(top, "s")).detail["children"]["0"]
        assert (child["instance"], child["state"]) == (second.id, "QUEUED")
        assert (first.state, second.state) == (W.RUNNING, W.QUEUED)
        await master.run()
    assert await harness.states() == {"leaf": [W.SUCCEEDED] * 2, "top": [W.SUCCEEDED]}


async def test_requests_for_one_instance_keep_their_order_when_one_cannot_be_stored(
    harness: Harness, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = await harness.publish("w", {"x": {}})
    async with Master(database, batch=1).working() as master:
        await harness.send(START, workflow)
        await master.poll()
        (run,) = await harness.instances()
        asked = [await harness.ask(kind, run) for kind in (PAUSE, RESUME)]
        once = failpoints.parse("store.before_commit=raise@1")
        monkeypatch.setattr(failpoints, "_armed_points", once)
        for state in (CommandState.PENDING, CommandState.DONE):
            await master.scanner.scan(range(PARTITIONS))
            assert [(await harness.command(c)).state for c in asked] == [state] * 2
    assert (await harness.instances())[0].state is W.RUNNING


@on_both
@pytest.mark.parametrize(
    "point",
    [
        f"{what}.{when}"
        for what in ("message", "start", "store")
        for when in ("before_commit", "after_commit")
    ],
)
async def test_map_is_complete_although_masters_fail_and_die_between_any_two_messages(
    harness: Harness, database: Database, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    await harness.publish("leaf", {"x": {}}, parameters={"item": {}})
    params = {"workflow": "leaf", "items": [f"i{n}" for n in range(7)], "parallel": 3}
    workflow = await harness.publish("top", {"m": {"type": "MAP", "params": params}})
    monkeypatch.setattr(failpoints, "_armed_points", failpoints.parse(f"{point}=raise%3"))
    await harness.send(START, workflow)
    for epoch in range(1, 100):  # each master lives for one round
        async with Master(database, epoch).working() as master:
            await master.poll()
            await master.work()
            instances = await harness.instances()
            moving = [i for i in instances if i.state not in FINISHED_WORKFLOW]
            assert len(moving) <= 4, "the parent and three items"
            if instances and not moving:
                break
    assert await harness.states() == {"top": [W.SUCCEEDED], "leaf": [W.SUCCEEDED] * 7}
    given = Counter(one.startup["item"] for one in await harness.instances("leaf"))
    assert given == {f"i{n}": 1 for n in range(7)}
