"""Why is it not running? Every layer answers from what is really there."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.coordination.queue import lane_of
from shoal.coordination.queue.entry import QueueEntry
from shoal.core.decide import decide
from shoal.core.runs.events import Begun, Event, PauseRequested, TaskClaimed, TaskEnded
from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Run
from shoal.core.runs.states import TaskSignal
from shoal.sql import UnitOfWork
from tests.integration.api.conftest import PREFIX, Api, problem_of
from tests.support.instances import create


async def _apply(api: Api, run: Run, event: Event) -> None:
    """Do what a master does with an event."""
    decision = decide(run, event)
    run.apply(decision)

    async def write(uow: UnitOfWork) -> None:
        await uow.instances.save([(run, decision)], event.at)

    await api.store(write)


async def _why(api: Api, path: str) -> dict[str, Any]:
    answer = await api.client.get(f"{PREFIX}{path}/why")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _texts(why: dict[str, Any], layer: str) -> list[str]:
    return [finding["text"] for finding in why["findings"] if finding["layer"] == layer]


def _id(run: Run, task: str) -> int:
    found = run.attempts[task].id
    assert found is not None
    return found


async def test_task_that_is_queued_knows_its_place_its_group_and_its_partition(api: Api) -> None:
    run = await api.run()
    now = datetime.now(UTC)
    await _apply(api, run, Begun(now))
    lane = lane_of("p")
    mine = QueueEntry("default", 2, run.id, 2, _id(run, "fetch"), run.partition, lane)
    await api.services.cluster.queue.put(
        [mine, QueueEntry("default", 0, run.id + 5, 2, 10**6, run.partition, lane)]
    )
    why = await _why(api, f"/task-instances/{mine.task_instance_id}")
    assert (why["state"], why["task"]) == ("QUEUED", "fetch")
    assert _texts(why, "queue") == ["it is number 2 of 2 in the queue of worker group 'default'"]
    assert "no worker of group 'default' is there" in _texts(why, "workers")[0]
    assert f"no master owns partition {run.partition}" in _texts(why, "partition")[0]
    whole = await _why(api, f"/instances/{run.id}")
    assert any(text.startswith("fetch: it is number 2") for text in _texts(whole, "queue"))
    assert _texts(whole, "upstream") == ["1 task waits for those before it"]


async def test_task_that_waits_names_what_is_before_it(api: Api) -> None:
    run = await api.run()
    await _apply(api, run, Begun(datetime.now(UTC)))
    why = await _why(api, f"/task-instances/{_id(run, 'report')}")
    assert _texts(why, "upstream")[0] == "upstream task fetch is QUEUED"
    [first, *_] = [f for f in why["findings"] if f["layer"] == "upstream"]
    assert first["task_instance_id"] == _id(run, "fetch")
    assert first["code"] == "upstream.task"
    assert first["arguments"] == {"upstream": "fetch", "state": "QUEUED"}
    of_run = await _why(api, f"/instances/{run.id}")
    [queue, *_] = [f for f in of_run["findings"] if f["layer"] == "queue"]
    assert queue["arguments"]["task"] == "fetch"


async def test_what_runs_what_failed_and_what_is_paused_say_so(api: Api) -> None:
    run = await api.run()
    now = datetime.now(UTC)
    await _apply(api, run, Begun(now))
    fetch = _id(run, "fetch")
    await _apply(api, run, TaskClaimed(fetch, "w1", now))
    why = await _why(api, f"/task-instances/{fetch}")
    assert _texts(why, "workers") == ["worker w1 has taken it and starts its process"]
    await _apply(api, run, PauseRequested(now))
    assert "shoal resume" in _texts(await _why(api, f"/instances/{run.id}"), "instance")[0]
    failed = TaskEnded(fetch, TaskSignal.FAIL, now, "w1", "exit code 3", 3)
    await _apply(api, run, failed)
    why = await _why(api, f"/task-instances/{fetch}")
    assert _texts(why, "result") == ["it is FAILED: exit code 3"]
    why = await _why(api, f"/task-instances/{_id(run, 'report')}")
    assert _texts(why, "result") == [
        "it is SKIPPED (something before it failed): upstream task fetch failed"
    ]
    why = await _why(api, f"/instances/{run.id}")
    assert why["state"] == "FAILED"
    assert _texts(why, "result") == ["it is FAILED: 1 task failed"]


async def test_run_that_waits_for_others_names_them(api: Api) -> None:
    active = await api.run("nightly")
    await api.publish("nightly", overlap="queue", description="one after the other")
    await _apply(api, active, Begun(datetime.now(UTC)))
    waiting = await api.run("nightly")

    async def wait(uow: UnitOfWork) -> None:
        from sqlalchemy import update

        from shoal.sql.schema.tables import workflow_instance

        await uow.connection.execute(
            update(workflow_instance)
            .where(workflow_instance.c.id == waiting.id)
            .values(admitted_at=None)
        )

    await api.publish("nightly", overlap="queue", description="one after the other")
    await api.store(wait)
    why = await _why(api, f"/instances/{waiting.id}")
    assert "overlap is queue: 1 of at most 1 runs of p/nightly are active, 1 wait" in _texts(
        why, "overlap"
    )
    assert [f["instance_id"] for f in why["findings"] if f["instance_id"]] == [active.id]


async def test_delay_says_how_long(api: Api) -> None:
    await api.publish("later")
    run = await api.run("later")
    now = datetime.now(UTC)
    spec = run.plan.spec.tasks[0].model_copy(update={"delay": 3600.0})
    run.plan = type(run.plan).of(
        run.plan.spec.model_copy(update={"tasks": (spec, *run.plan.spec.tasks[1:])})
    )
    await _apply(api, run, Begun(now))
    why = await _why(api, f"/task-instances/{_id(run, 'fetch')}")
    [text] = _texts(why, "delay")
    assert text.startswith("waits for its start delay, which ends at ")
    assert (now + timedelta(hours=1)).isoformat(timespec="minutes")[:16] in text


async def test_unknown_ids_are_not_found(api: Api) -> None:
    problem_of(await api.client.get(f"{PREFIX}/instances/999/why"), 404, "not-found")
    problem_of(await api.client.get(f"{PREFIX}/task-instances/999/why"), 404, "not-found")


async def test_task_that_waits_for_a_slot_names_who_has_them(api: Api) -> None:
    now = datetime.now(UTC)

    async def group(uow: UnitOfWork) -> None:
        await uow.concurrency.put("p", "db", 1, "", now)

    await api.store(group)
    tasks = [
        {"name": name, "type": "SHELL", "concurrency_group": "db", "params": {"script": "true"}}
        for name in ("fetch", "other")
    ]
    await api.publish("busy", tasks=tasks)
    command = await api.command(type="START", project="p", workflow="busy")
    async with api.services.store.unit_of_work() as uow:
        stored = await uow.commands.get(command["id"])
        new = NewInstance(
            stored.id, stored.workflow_id, 1, stored.partition, 2, {}, now, now, admitted_at=now
        )
        [run] = await create(uow, [new])
        await uow.commit()
    await _apply(api, run, Begun(now))
    why = await _why(api, f"/task-instances/{_id(run, 'other')}")
    assert _texts(why, "concurrency") == [
        "0 of 1 slots of concurrency group 'db' are taken, it is number 2 of 2 that wait"
    ]
