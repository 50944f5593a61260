"""Commands: accepted once, checked at once, followed to their outcome."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from shoal.api.services import Services
from shoal.coordination.cluster.notifications import Notifications
from shoal.coordination.keys import partition_of
from shoal.sql import UnitOfWork
from tests.integration.api.conftest import PARTITIONS, PREFIX, Api, fields_of, problem_of
from tests.support.waiting import DEADLINE_S

COMMANDS = f"{PREFIX}/commands"


async def test_a_start_is_stored_and_notifies_the_notification_of_its_partition(api: Api) -> None:
    notified: asyncio.Queue[int] = asyncio.Queue()
    await api.publish(parameters={"day": {"type": "date"}, "n": 1})
    async with Notifications(api.services.cluster.session, notified.put_nowait) as notifications:
        notifications.subscribe(range(PARTITIONS))
        for _ in range(PARTITIONS):  # each notification arrives once when it is listened to
            await asyncio.wait_for(notified.get(), DEADLINE_S)
        command = await api.command(
            type="START",
            project="p",
            workflow="daily",
            parameters={"day": "2013-01-15", "n": 2},
            logical_time="2013-01-15T06:00:00+01:00",
            priority="high",
            idempotency_key="k1",
        )
        async with api.services.store.unit_of_work(read_only=True) as uow:
            stored = await uow.commands.get(command["id"])
        assert await asyncio.wait_for(notified.get(), DEADLINE_S) == stored.partition
    assert command["state"] == "PENDING"
    assert command["parameters"] == {"day": "2013-01-15", "n": "2"}
    assert command["logical_time"] == "2013-01-15T05:00:00Z"
    assert command["priority"] == "HIGH"
    assert (command["instance_id"], command["result_instance_id"]) == (None, None)
    shown = await api.client.get(f"{COMMANDS}/{command['id']}")
    assert shown.json() == command


async def test_the_same_key_starts_once(api: Api) -> None:
    await api.publish()
    body = {"type": "START", "project": "p", "workflow": "daily"}
    headers = {"Idempotency-Key": "k"}
    answers = await asyncio.gather(
        *(api.client.post(COMMANDS, json=body, headers=headers) for _ in range(8))
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    [location] = {answer.headers["location"] for answer in answers}
    assert location == f"{COMMANDS}/{answers[0].json()['id']}"
    in_body = await api.client.post(COMMANDS, json={**body, "idempotency_key": "k"})
    assert in_body.json()["id"] == answers[0].json()["id"]


async def test_keys_that_somebody_chooses_do_not_choose_the_partition(api: Api) -> None:
    """Else a caller who may start one workflow could give all work to one master."""
    await api.publish()
    keys = [key for key in map(str, range(2_000)) if partition_of(key, PARTITIONS) == 0][:64]
    body = {"type": "START", "project": "p", "workflow": "daily"}
    for key in keys:
        await api.command(**body, idempotency_key=key)
    async with api.services.store.unit_of_work(read_only=True) as uow:
        backlog = await uow.commands.backlog()
    assert sum(backlog.values()) == len(keys)
    assert len(backlog) > 1


async def test_without_a_key_every_request_starts_one(api: Api) -> None:
    await api.publish()
    body = {"type": "START", "project": "p", "workflow": "daily"}
    first, second = await api.command(**body), await api.command(**body)
    assert first["id"] != second["id"]
    assert first["idempotency_key"] != second["idempotency_key"]


async def test_a_key_of_another_request_is_refused(api: Api) -> None:
    await api.publish(parameters={"n": 1})
    body: dict[str, Any] = {
        "type": "START",
        "project": "p",
        "workflow": "daily",
        "idempotency_key": "k",
    }
    await api.command(**body)
    other = await api.client.post(COMMANDS, json={**body, "parameters": {"n": 2}})
    problem_of(other, 422, "idempotency-key-reused")
    both = await api.client.post(COMMANDS, json=body, headers={"Idempotency-Key": "other"})
    assert fields_of(problem_of(both, 422, "invalid-request")).keys() == {"idempotency_key"}
    for key in ("", "x" * 256):
        long = await api.client.post(COMMANDS, json={**body, "idempotency_key": key})
        assert fields_of(problem_of(long, 422, "invalid-request")).keys() == {"idempotency_key"}


async def test_parameters_are_checked_at_once(api: Api) -> None:
    await api.publish(
        parameters={"day": {"type": "date"}, "n": {"type": "integer", "default": 1}, "free": {}}
    )
    answer = await api.client.post(
        COMMANDS,
        json={
            "type": "START",
            "project": "p",
            "workflow": "daily",
            "parameters": {"day": "15.1.2013", "n": "x", "dya": "2013-01-15"},
        },
    )
    found = fields_of(problem_of(answer, 422, "invalid-request"))
    assert found == {
        "parameters.dya": "the workflow has no such parameter; it has: day, free, n",
        "parameters.day": "'15.1.2013' is not a valid date",
        "parameters.n": "'x' is not a valid integer",
        "parameters.free": "has no default, give a value",
    }
    async with api.services.store.unit_of_work(read_only=True) as uow:
        assert sum((await uow.commands.backlog()).values()) == 0


async def test_parameters_are_checked_against_the_version_that_will_run(api: Api) -> None:
    await api.publish(parameters={"old": "1"})
    await api.publish(parameters={"new": "1"})
    start = {"type": "START", "project": "p", "workflow": "daily", "parameters": {"old": "2"}}
    problem_of(await api.client.post(COMMANDS, json=start), 422, "invalid-request")
    assert (await api.command(**start, version=1))["version"] == 1
    unknown = await api.client.post(COMMANDS, json={**start, "version": 3})
    problem_of(unknown, 404, "not-found")


async def test_what_does_not_exist_cannot_be_commanded(api: Api) -> None:
    start = {"type": "START", "workflow": "none"}
    document = problem_of(await api.client.post(COMMANDS, json=start), 404, "not-found")
    assert "default/none" in document["detail"]
    for kind in ("RERUN", "PAUSE", "RESUME", "STOP", "RECOVER"):
        body = {"type": kind, "instance_id": 4711}
        problem_of(await api.client.post(COMMANDS, json=body), 404, "not-found")


MISMATCHES: list[tuple[dict[str, Any], set[str]]] = [
    ({"type": "START"}, {"workflow"}),
    ({"type": "START", "workflow": "w", "instance_id": 1}, {"instance_id"}),
    ({"type": "STOP"}, {"instance_id"}),
    ({"type": "STOP", "workflow": "w"}, {"instance_id", "workflow"}),
    ({"type": "STOP", "instance_id": 0}, {"instance_id"}),
    (
        {"type": "RERUN", "instance_id": 1, "parameters": {"a": "b"}, "priority": "LOW"},
        {"parameters", "priority"},
    ),
    ({"type": "START", "workflow": "w", "priority": "URGENT"}, {"priority"}),
    ({"type": "START", "workflow": "w", "logical_time": "2013-01-15"}, {"logical_time"}),
    (
        {"type": "START", "workflow": "w", "logical_time": "2013-01-15T00:00:00"},
        {"logical_time"},
    ),
    (
        {"type": "START", "workflow": "w", "logical_time": "9999-12-31T23:59:59-12:00"},
        {"logical_time"},
    ),
    ({"type": "START", "workflow": "w", "version": 0}, {"version"}),
    ({}, {"type"}),
]


async def test_fields_that_do_not_go_with_the_type(api: Api) -> None:
    for body, fields in MISMATCHES:
        answer = await api.client.post(COMMANDS, json=body)
        assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == fields, body


async def test_commands_for_an_instance_go_to_its_own_partition(api: Api) -> None:
    run = await api.run()
    for kind in ("RERUN", "PAUSE", "RESUME", "STOP", "RECOVER"):
        command = await api.command(type=kind, instance_id=run.id)
        assert command["instance_id"] == run.id
        async with api.services.store.unit_of_work(read_only=True) as uow:
            assert (await uow.commands.get(command["id"])).partition == run.partition


async def test_waiting_ends_with_the_outcome(api: Api) -> None:
    await api.publish()
    command = await api.command(type="START", project="p", workflow="daily")
    address = f"{COMMANDS}/{command['id']}"
    waiting = asyncio.create_task(api.client.get(f"{address}?wait=30"))
    pending = await api.client.get(f"{address}?wait=0.05")
    assert pending.json()["state"] == "PENDING"

    async def refuse(uow: UnitOfWork) -> None:
        await uow.commands.refuse(command["id"], "no more", datetime.now(UTC))

    await api.store(refuse)
    async with asyncio.timeout(29):  # it does not wait to the end
        answer = (await waiting).json()
    assert (answer["state"], answer["reason"]) == ("REFUSED", "no more")
    assert answer["handled_at"].endswith("Z")


async def test_waits_out_of_range(api: Api) -> None:
    for wait in ("-1", "31", "x", "nan", "inf"):
        answer = await api.client.get(f"{COMMANDS}/1?wait={wait}")
        assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == {"wait"}


async def test_a_stopping_process_does_not_let_anybody_wait(api: Api) -> None:
    await api.publish()
    command = await api.command(type="START", project="p", workflow="daily")
    api.services.streams.stopping.set()
    async with asyncio.timeout(29):  # less than it asks for
        answer = await api.client.get(f"{COMMANDS}/{command['id']}?wait=30")
    assert answer.json()["state"] == "PENDING"


async def test_a_notification_that_cannot_be_notified_is_no_error(
    api: Api, services: Services
) -> None:
    await api.publish()
    await services.cluster.session.__aexit__(None, None, None)
    command = await api.command(type="START", project="p", workflow="daily")
    assert command["state"] == "PENDING"
