"""The same request to many runs: previewed, judged one by one, stored once."""

from datetime import UTC, datetime
from typing import Any

import httpx

from shoal.core.access.principals import EVERYTHING
from shoal.core.decide import decide
from shoal.core.runs.events import Begun
from shoal.core.runs.run import Run
from shoal.sql import UnitOfWork
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of

MISSING = 899_999_999


async def begun(api: Api, run: Run) -> None:
    """Let its first tasks be queued, as a master does."""
    now = datetime.now(UTC)
    decision = decide(run, Begun(now))
    run.apply(decision)
    await api.store(lambda uow: uow.instances.save([(run, decision)], now))


async def bulk(api: Api, query: str = "", headers: Any = None, **body: Any) -> httpx.Response:
    return await api.client.post(f"{PREFIX}/bulk-commands{query}", json=body, headers=headers)


async def pending(api: Api) -> list[tuple[str, int | None, str]]:
    """The commands that are stored and not carried out: type, instance, who asked."""
    async with api.services.store.unit_of_work(read_only=True) as uow:
        found = await uow.commands.requests(range(4), 100)
    return [(str(one.type), one.instance_id, one.requested_by) for one in found]


async def test_preview_says_what_the_master_would_decide_and_stores_nothing(api: Api) -> None:
    runs = [await api.run() for _ in range(2)]
    await begun(api, runs[0])
    ids = [run.id for run in runs]
    answer = await bulk(api, "?dry_run=true", type="STOP", ids=[*ids, ids[0], MISSING])
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert [one["id"] for one in shown["items"]] == [*ids, MISSING]
    first, _, missing = shown["items"]
    assert first["preview"] == {
        "refusal": None,
        "state": "STOPPED",
        "tasks": [
            {"task": "fetch", "state": "QUEUED", "becomes": "KILLED", "ends_early": False},
            {"task": "report", "state": "WAITING", "becomes": "KILLED", "ends_early": False},
        ],
        "more_tasks": 0,
    }
    assert missing["problem"]["status"] == 404
    assert missing["problem"]["detail"] == f"there is no workflow instance {MISSING}"
    refused = (await bulk(api, "?dry_run=true", type="RESUME", ids=ids)).json()
    assert all("cannot resume" in one["preview"]["refusal"] for one in refused["items"])
    assert await pending(api) == []


async def test_each_gets_a_command_once(api: Api) -> None:
    runs = [await api.run() for _ in range(3)]
    ids = [run.id for run in runs]
    key = {"Idempotency-Key": "once"}
    first = await bulk(api, headers=key, type="STOP", ids=[*ids, MISSING])
    assert first.status_code == 202, first.text
    commands = [one["command_id"] for one in first.json()["items"]]
    assert None not in commands[:3]
    assert commands[3] is None
    again = await bulk(api, headers=key, type="STOP", ids=[*ids, MISSING])
    assert [one["command_id"] for one in again.json()["items"]] == commands
    assert sorted(await pending(api)) == [("STOP", one, "break-glass") for one in ids]
    other = await bulk(api, headers=key, type="PAUSE", ids=ids)
    assert [one["problem"]["type"] for one in other.json()["items"]] == [
        "/problems/idempotency-key-reused"
    ] * 3
    assert len(await pending(api)) == 3


async def test_filters_do_exactly_what_their_preview_has_shown(api: Api) -> None:
    one, _ = await api.run("daily"), await api.run("hourly")
    where = "?workflow=daily"
    shown = (await bulk(api, f"{where}&dry_run=true", type="STOP")).json()
    assert [item["id"] for item in shown["items"]] == [one.id]
    blind = await bulk(api, where, type="STOP")
    assert fields_of(problem_of(blind, 422, "invalid-request")).keys() == {"digest"}
    other = await bulk(api, where, type="RERUN", digest=shown["digest"])
    problem_of(other, 412, "preview-outdated")
    two = await api.started("daily", "p")
    late = await bulk(api, where, type="STOP", digest=shown["digest"])
    assert "request a new preview" in problem_of(late, 412, "preview-outdated")["detail"]
    assert await pending(api) == []
    shown = (await bulk(api, f"{where}&dry_run=true", type="STOP")).json()
    done = await bulk(api, where, type="STOP", digest=shown["digest"])
    assert done.status_code == 202, done.text
    assert {item[1] for item in await pending(api)} == {one.id, two.id}


async def test_what_does_not_go_together_is_refused(api: Api) -> None:
    run = await api.run()
    for query, body, field in (
        ("", {"type": "STOP"}, "ids"),
        ("?state=RUNNING", {"type": "STOP", "ids": [run.id]}, "ids"),
        ("?state=RUNNING", {"type": "KILL_TASK", "digest": "x"}, "ids"),
        ("", {"type": "STOP", "ids": [run.id], "reason": "x"}, "reason"),
        ("", {"type": "RERUN_TASKS", "ids": [run.id]}, "tasks"),
        ("", {"type": "START", "ids": [run.id]}, "type"),
        ("", {"type": "STOP", "ids": [True]}, "ids[0]"),
        ("", {"type": "STOP", "ids": []}, "ids"),
        ("", {"type": "STOP", "ids": list(range(1, 502))}, "ids"),
        ("?sate=RUNNING", {"type": "STOP", "ids": [run.id]}, "sate"),
    ):
        answer = await bulk(api, query, **body)
        assert field in fields_of(problem_of(answer, 422, "invalid-request")), answer.text
    assert await pending(api) == []


async def test_each_is_authorised_by_itself(api: Api) -> None:
    """A runner of one project who reads a second one and does not know of a third."""
    runs = {name: await api.run(project=name) for name in ("mine", "read", "hidden")}
    made: list[str] = []

    async def store(uow: UnitOfWork) -> None:
        roles = {"mine": "runner", "read": "reader"}
        who = await account(uow, "ada", datetime.now(UTC), roles)
        made.append((await token(uow, who, datetime.now(UTC), EVERYTHING))[1])

    await api.store(store)
    headers = bearer(made[0])
    ids = [run.id for run in runs.values()]
    for query in ("?dry_run=true", ""):
        answer = await bulk(api, query, headers, type="STOP", ids=[*ids, MISSING])
        items = answer.json()["items"]
        problems = [one["problem"] and one["problem"]["status"] for one in items]
        assert problems == [None, 403, 404, 404]
        *_, hidden, missing = items
        same = hidden["problem"]["detail"].replace(str(hidden["id"]), "<key>")
        assert same == missing["problem"]["detail"].replace(str(MISSING), "<key>")
        assert "preview" not in {k for k, v in hidden.items() if v}
    assert await pending(api) == [("STOP", ids[0], "ada")]
    tasks = [next(iter(run.attempts.values())).id for run in runs.values()]
    answer = await bulk(api, "", headers, type="KILL_TASK", ids=tasks)
    of_tasks = [one["problem"] for one in answer.json()["items"]]
    assert [one and one["status"] for one in of_tasks] == [None, 403, 404]
    shown = (await bulk(api, "?state=QUEUED&dry_run=true", headers, type="STOP")).json()
    assert [one["id"] for one in shown["items"]] == ids[1::-1]  # what it sees
    assert shown["items"][0]["problem"]["status"] == 403
