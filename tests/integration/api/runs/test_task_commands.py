"""Commands about chosen tasks: what they become, and what is refused at once."""

from dataclasses import replace
from typing import Any

import pytest

from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.runs.commands import Command, CommandType
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import TaskState
from shoal.sql import UnitOfWork
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of

COMMANDS = f"{PREFIX}/commands"


async def stored(api: Api, command: Any) -> Command:
    async with api.services.store.unit_of_work(read_only=True) as uow:
        return await uow.commands.get(command["id"])


async def again(api: Api, run: Run, task: str) -> tuple[int, int]:
    """Let the first attempt of ``task`` fail and a second one follow; return their ids."""
    first = run.attempts[task]
    failed = replace(first, state=TaskState.FAILED)
    second = replace(first, id=None, number=2)
    decision = Decision({(task, 1): failed, (task, 2): second})

    async def write(uow: UnitOfWork) -> None:
        ids.update(await uow.instances.save([(run, decision)], run.created_at))

    ids: dict[tuple[int, str, int], int] = {}
    await api.store(write)
    assert first.id is not None
    return first.id, ids[run.id, task, 2]


@pytest.mark.parametrize(
    ("mode", "meant"),
    [
        (None, SelectionMode.ONLY),
        ("upstream", SelectionMode.UPSTREAM),
        ("downstream", SelectionMode.DOWNSTREAM),
    ],
)
async def test_a_start_of_chosen_tasks(api: Api, mode: str | None, meant: SelectionMode) -> None:
    await api.publish()
    body = {"type": "START", "project": "p", "workflow": "daily"}
    command = await api.command(**body, tasks=["fetch", "fetch"], mode=mode)
    assert (command["tasks"], command["mode"]) == (["fetch"], meant)
    assert (await stored(api, command)).selection == Selection(("fetch",), meant)
    everything = await api.command(**body)
    assert (everything["tasks"], everything["mode"]) == (None, None)


async def test_tasks_of_an_instance_run_again(api: Api) -> None:
    run = await api.run()
    command = await api.command(
        type="RERUN_TASKS", instance_id=run.id, tasks=["report"], mode="upstream"
    )
    new = await stored(api, command)
    assert new.selection == Selection(("report",), SelectionMode.UPSTREAM)
    assert (new.instance_id, new.partition) == (run.id, run.partition)


async def test_tasks_that_the_workflow_does_not_have_are_refused_with_a_hint(api: Api) -> None:
    run = await api.run()
    bodies: list[dict[str, Any]] = [
        {"type": "START", "project": "p", "workflow": "daily", "tasks": ["reprot", "fetch"]},
        {"type": "RERUN_TASKS", "instance_id": run.id, "tasks": ["reprot"]},
    ]
    for body in bodies:
        answer = await api.client.post(COMMANDS, json=body)
        found = fields_of(problem_of(answer, 422, "invalid-request"))
        assert found == {"tasks": "the workflow has no task 'reprot'; did you mean report?"}
    body = {"type": "KILL_TASK", "instance_id": run.id, "task": "fecth"}
    found = fields_of(
        problem_of(await api.client.post(COMMANDS, json=body), 422, "invalid-request")
    )
    assert found == {"task": "the workflow has no task 'fecth'; did you mean fetch?"}


@pytest.mark.parametrize("kind", ["KILL_TASK", "FORCE_SUCCESS"])
async def test_one_task_is_named_by_its_instance_or_by_its_newest_attempt(
    api: Api, kind: str
) -> None:
    run = await api.run()
    older, newest = await again(api, run, "fetch")
    by_name = await api.command(type=kind, instance_id=run.id, task="fetch")
    by_id = await api.command(type=kind, task_instance_id=newest)
    for command in (by_name, by_id):
        assert (command["instance_id"], command["task"]) == (run.id, "fetch")
        assert (await stored(api, command)).partition == run.partition
    late = await api.client.post(COMMANDS, json={"type": kind, "task_instance_id": older})
    assert str(newest) in problem_of(late, 409, "not-newest-attempt")["detail"]
    unknown = await api.client.post(COMMANDS, json={"type": kind, "task_instance_id": 4711})
    problem_of(unknown, 404, "not-found")


async def test_the_reason_of_a_forced_success_is_kept_with_who_asked(api: Api) -> None:
    run = await api.run()
    body = {"type": "FORCE_SUCCESS", "instance_id": run.id, "task": "fetch"}
    command = await api.command(**body, reason="loaded by hand", idempotency_key="k")
    assert command["detail"] == {"reason": "loaded by hand"}
    assert (await stored(api, command)).requested_by == "break-glass"
    other = {**body, "reason": "another", "idempotency_key": "k"}
    problem_of(await api.client.post(COMMANDS, json=other), 422, "idempotency-key-reused")


MISMATCHES: list[tuple[dict[str, Any], set[str]]] = [
    ({"type": "RERUN_TASKS", "instance_id": 1}, {"tasks"}),
    ({"type": "RERUN_TASKS", "instance_id": 1, "tasks": []}, {"tasks"}),
    ({"type": "RERUN_TASKS", "tasks": ["a"]}, {"instance_id"}),
    ({"type": "START", "workflow": "w", "mode": "upstream"}, {"mode"}),
    ({"type": "START", "workflow": "w", "tasks": ["a"], "mode": "around"}, {"mode"}),
    ({"type": "STOP", "instance_id": 1, "tasks": ["a"]}, {"tasks"}),
    ({"type": "KILL_TASK", "instance_id": 1}, {"task"}),
    ({"type": "KILL_TASK"}, {"instance_id", "task"}),
    ({"type": "KILL_TASK", "task_instance_id": 1, "task": "a"}, {"task"}),
    ({"type": "KILL_TASK", "task_instance_id": 1, "instance_id": 1}, {"instance_id"}),
    ({"type": "KILL_TASK", "task_instance_id": 1, "reason": "so"}, {"reason"}),
    ({"type": "FORCE_SUCCESS", "task_instance_id": 1, "reason": ""}, {"reason"}),
    ({"type": "RECOVER", "instance_id": 1, "task": "a"}, {"task"}),
]


async def test_fields_that_do_not_go_with_the_type(api: Api) -> None:
    for body, fields in MISMATCHES:
        answer = await api.client.post(COMMANDS, json=body)
        assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == fields, body


async def test_messages_between_masters_cannot_be_sent(api: Api) -> None:
    run = await api.run()
    for kind in (CommandType.ADMIT, CommandType.CHILD):
        answer = await api.client.post(COMMANDS, json={"type": kind, "instance_id": run.id})
        assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == {"type"}
