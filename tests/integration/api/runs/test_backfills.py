"""Backfills over REST: the plan, the request, how far it has come. A master is played by hand."""

from dataclasses import replace
from typing import Any

import pytest

from shoal.core.backfill.request import BackfillRunState, asked
from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.records import NewInstance
from shoal.sql.backfill_plans import plan_of
from tests.integration.api.conftest import PARTITIONS, PREFIX, Api, fields_of, problem_of
from tests.support.cases import each_row
from tests.support.instances import create

RANGE = {"project": "p", "workflow": "daily", "from": "2026-01-01", "to": "2026-01-05"}


async def ask(api: Api, *, key: str | None = None, **fields: Any) -> Any:
    """Ask for a backfill; return the answer."""
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = await api.client.post(f"{PREFIX}/backfills", json={**RANGE, **fields}, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def carried_out(api: Api, command_id: int) -> int:
    """Create the backfill of a command, as a master does; return its id."""
    database, now = api.services.store.database, api.services.store.clock()
    async with database.unit_of_work() as uow:
        command = await uow.commands.get(command_id)
        request = asked(command.detail)[0]
        created = await uow.backfills.create(command, request, await plan_of(uow, request), now)
        await uow.commands.done(command.id, None, now)
        await uow.commit()
    return created.id


async def test_a_dry_run_shows_the_plan_and_stores_nothing(api: Api) -> None:
    await api.publish(schedules=[{"cron": "0 0 6 * * ?", "timezone": "Europe/Berlin"}])
    answer = await api.client.post(
        f"{PREFIX}/backfills?dry_run=true", json={**RANGE, "order": "descending"}
    )
    assert answer.status_code == 200
    content = answer.json()
    assert content["command"] is None
    assert (content["plan"]["total"], content["plan"]["to_run"]) == (5, 5)
    assert content["plan"]["runs"][0] == {
        "position": 0,
        "project": "p",
        "workflow": "daily",
        "logical_time": "2026-01-05T05:00:00Z",
        "skipped": None,
    }
    async with api.services.store.unit_of_work(read_only=True) as uow:
        assert await uow.commands.requests(range(PARTITIONS), 10) == []


async def test_a_request_is_stored_for_the_owner_of_its_partition(api: Api) -> None:
    await api.publish()
    answer = await ask(api, key="my key", parallel=4)
    assert answer["plan"] == {"total": 5, "to_run": 5, "runs": []}
    command = answer["command"]
    assert (command["type"], command["state"], command["backfill_id"]) == (
        "BACKFILL",
        "PENDING",
        None,
    )
    async with api.services.store.unit_of_work(read_only=True) as uow:
        stored = await uow.commands.get(command["id"])
    assert stored.type is CommandType.BACKFILL
    assert stored.partition in range(PARTITIONS)
    assert asked(stored.detail)[0].parallel == 4


NO_RANGE: dict[str, Any] = {"from": None, "to": None}


async def _run_for(api: Api, day: str) -> None:
    """Let the workflow have a run for this day that has not ended."""
    command = await api.command(
        type="START", project="p", workflow="daily", logical_time=f"{day}T00:00:00Z"
    )
    now = api.services.store.clock()
    async with api.services.store.unit_of_work() as uow:
        stored = await uow.commands.get(command["id"])
        assert stored.logical_time is not None
        new = NewInstance(
            stored.id, stored.workflow_id, 1, stored.partition, 2, {}, stored.logical_time, now
        )
        await create(uow, [new])
        await uow.commit()


async def test_the_same_key_asks_once(api: Api) -> None:
    await api.publish()
    first = await ask(api, key="k", reprocess="failed", dates=["2026-01-01"], **NO_RANGE)
    number = await carried_out(api, first["command"]["id"])
    await _run_for(api, "2026-01-01")  # now there is nothing to plan any more
    again = await ask(api, key="k", reprocess="failed", dates=["2026-01-01"], **NO_RANGE)
    assert again["plan"] is None
    assert again["command"]["id"] == first["command"]["id"]
    assert again["command"]["backfill_id"] == number
    other = await api.client.post(
        f"{PREFIX}/backfills", json={**RANGE, "parallel": 2}, headers={"Idempotency-Key": "k"}
    )
    problem_of(other, 422, "idempotency-key-reused")


@each_row(
    "fields, field, words",
    [
        ({"to": "2025-01-01"}, "to", "before"),
        ({"by": "schedule"}, "by", "no schedule"),
        ({"tasks": ["reprt"]}, "tasks", "did you mean 'report'"),
        ({"parameters": {"x": "1"}}, "parameters.x", "no such parameter"),
        ({"only": "failed"}, "reprocess", "nothing to run"),
        ({"parallel": 0}, "parallel", "greater than or equal to 1"),
        ({"from": "yesterday"}, "from", "is not a date"),
        ({"dates": ["2026-01-01"]}, "body", "do not go with"),
        ({"paralel": 3}, "paralel", "is not a known field"),
    ],
)
async def test_what_cannot_run_is_refused_at_once_and_names_the_field(
    api: Api, fields: dict[str, Any], field: str, words: str
) -> None:
    await api.publish()
    answer = await api.client.post(f"{PREFIX}/backfills", json={**RANGE, **fields})
    found = fields_of(problem_of(answer, 422, "invalid-request"))
    assert words in found[field]


@each_row("fields", [{"workflow": "nightly"}, {"version": 9}])
async def test_a_workflow_that_is_not_there_is_not_found(api: Api, fields: dict[str, Any]) -> None:
    await api.publish()
    answer = await api.client.post(f"{PREFIX}/backfills", json={**RANGE, **fields})
    problem_of(answer, 404, "not-found")


async def test_progress_and_dates_are_shown(api: Api) -> None:
    await api.publish()
    number = await carried_out(api, (await ask(api, parallel=2))["command"]["id"])
    async with api.services.store.unit_of_work() as uow:
        first, *_ = await uow.backfills.runs(number)
        done = replace(first, state=BackfillRunState.SUCCEEDED, tries=1, instance_id=99)
        await uow.backfills.save(number, [done])
        await uow.commit()
    found = (await api.client.get(f"{PREFIX}/backfills/{number}")).json()
    assert found["counts"] == {"SUCCEEDED": 1, "WAITING": 4}
    assert (found["total"], found["state"], found["requested_by"]) == (5, "RUNNING", "break-glass")
    assert found["request"] == {**RANGE, "parallel": 2}
    page = (await api.client.get(f"{PREFIX}/backfills/{number}/runs?limit=3")).json()
    assert [item["position"] for item in page["items"]] == [0, 1, 2]
    assert page["items"][0] == {
        "position": 0,
        "project": "p",
        "workflow": "daily",
        "logical_time": "2026-01-01T00:00:00Z",
        "state": "SUCCEEDED",
        "reason": None,
        "tries": 1,
        "instance_id": 99,
    }
    url = f"{PREFIX}/backfills/{number}/runs?limit=3&cursor={page['next']}"
    rest = (await api.client.get(url)).json()
    assert [item["position"] for item in rest["items"]] == [3, 4]
    assert rest["next"] is None
    some = (await api.client.get(f"{PREFIX}/backfills/{number}/runs?state=SUCCEEDED")).json()
    assert len(some["items"]) == 1


async def test_backfills_are_listed_newest_first(api: Api) -> None:
    await api.publish()
    await api.publish("other")
    ids = [
        await carried_out(api, (await ask(api, workflow=name))["command"]["id"])
        for name in ("daily", "other", "daily")
    ]
    page = (await api.client.get(f"{PREFIX}/backfills?limit=2")).json()
    assert [item["id"] for item in page["items"]] == ids[:0:-1]
    last = (await api.client.get(f"{PREFIX}/backfills?cursor={page['next']}")).json()
    assert [item["id"] for item in last["items"]] == ids[:1]
    of_one = (await api.client.get(f"{PREFIX}/backfills?workflow=other&project=p")).json()
    assert [item["id"] for item in of_one["items"]] == [ids[1]]
    assert (await api.client.get(f"{PREFIX}/backfills?state=PAUSED")).json()["items"] == []
    assert (await api.client.get(f"{PREFIX}/backfills?project=q")).json()["items"] == []


@pytest.mark.parametrize("request_", ["pause", "resume", "cancel", "retry"])
async def test_a_request_about_a_backfill_is_a_command_in_its_partition(
    api: Api, request_: str
) -> None:
    await api.publish()
    asked = (await ask(api))["command"]["id"]
    number = await carried_out(api, asked)
    headers = {"Idempotency-Key": "once"}
    url = f"{PREFIX}/backfills/{number}/{request_}"
    answers = [(await api.client.post(url, headers=headers)).json() for _ in range(2)]
    assert answers[0]["id"] == answers[1]["id"]
    assert (answers[0]["type"], answers[0]["backfill_id"]) == (
        f"{request_.upper()}_BACKFILL",
        number,
    )
    async with api.services.store.unit_of_work(read_only=True) as uow:
        stored = await uow.commands.get(answers[0]["id"])
        assert stored.partition == (await uow.commands.get(asked)).partition
    assert stored.state is CommandState.PENDING


async def test_one_key_is_for_one_backfill(api: Api) -> None:
    await api.publish()
    ids = [await carried_out(api, (await ask(api))["command"]["id"]) for _ in range(2)]
    headers = {"Idempotency-Key": "pause"}
    first = await api.client.post(f"{PREFIX}/backfills/{ids[0]}/pause", headers=headers)
    assert first.status_code == 202
    second = await api.client.post(f"{PREFIX}/backfills/{ids[1]}/pause", headers=headers)
    problem_of(second, 422, "idempotency-key-reused")


async def test_an_unknown_backfill_is_not_found(api: Api) -> None:
    for url in ("/backfills/9", "/backfills/9/runs"):
        problem_of(await api.client.get(f"{PREFIX}{url}"), 404, "not-found")
    problem_of(await api.client.post(f"{PREFIX}/backfills/9/pause"), 404, "not-found")


@each_row("kind", ["BACKFILL", "PAUSE_BACKFILL"])
async def test_commands_about_backfills_have_a_route_of_their_own(api: Api, kind: str) -> None:
    answer = await api.client.post(f"{PREFIX}/commands", json={"type": kind, "instance_id": 1})
    assert "type" in fields_of(problem_of(answer, 422, "invalid-request"))
