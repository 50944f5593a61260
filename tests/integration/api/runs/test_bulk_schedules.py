"""Pausing and resuming many schedules: each with a result of its own."""

from typing import Any

import httpx

from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of

MISSING = 899_999_999
TWICE = [{"cron": "0 0 6 * * ?"}, {"cron": "0 0 7 * * ?"}]


async def bulk(api: Api, query: str = "", headers: Any = None, **body: Any) -> httpx.Response:
    return await api.client.post(f"{PREFIX}/bulk-schedules{query}", json=body, headers=headers)


async def paused(api: Api) -> dict[int, bool]:
    """Whether each schedule is paused, by its id."""
    found = (await api.client.get(f"{PREFIX}/schedules")).json()["items"]
    return {one["id"]: one["paused_at"] is not None for one in found}


async def test_each_is_paused_and_resumed_with_a_result_of_its_own(api: Api) -> None:
    await api.publish("a", schedules=TWICE)
    await api.publish("b", schedules=TWICE[:1])
    one, two, other = await paused(api)
    shown = await bulk(api, "?dry_run=true", type="pause", ids=[one, one, MISSING])
    assert shown.status_code == 200, shown.text
    first, missing = shown.json()["items"]
    assert (first["schedule"]["id"], first["schedule"]["paused_at"]) == (one, None)
    assert missing["problem"]["detail"] == f"there is no schedule {MISSING}"
    assert set((await paused(api)).values()) == {False}
    done = (await bulk(api, type="pause", ids=[two, MISSING, one])).json()
    assert [item["problem"] is None for item in done["items"]] == [True, False, True]
    assert done["items"][0]["schedule"]["next_fire_at"] is None
    assert await paused(api) == {one: True, two: True, other: False}
    again = (await bulk(api, "?project=p&workflow=a", type="pause")).json()
    assert [item["id"] for item in again["items"]] == [one, two]
    back = (await bulk(api, "?project=p", type="resume")).json()
    assert (len(back["items"]), back["is_more"]) == (3, False)
    assert all(item["schedule"]["next_fire_at"] for item in back["items"])
    assert set((await paused(api)).values()) == {False}


async def test_what_does_not_go_together_is_refused(api: Api) -> None:
    for query, body, field in (
        ("", {"type": "pause"}, "ids"),
        ("?project=p", {"type": "pause", "ids": [1]}, "ids"),
        ("?workflow=a", {"type": "pause"}, "project"),
        ("", {"type": "stop", "ids": [1]}, "type"),
        ("", {"type": "pause", "ids": [True]}, "ids[0]"),
        ("", {"type": "pause", "ids": [0]}, "ids"),
        ("", {"type": "pause", "ids": list(range(1, 502))}, "ids"),
    ):
        problem = problem_of(await bulk(api, query, **body), 422, "invalid-request")
        assert field in fields_of(problem), (query, body)


async def test_each_is_authorised_by_itself_and_is_in_the_audit(api: Api) -> None:
    """A runner of one project who reads a second one and does not know of a third."""
    for project in ("mine", "read", "hidden"):
        await api.publish("daily", project, schedules=TWICE[:1])
    mine, read, hidden = await paused(api)
    now = api.services.store.clock()
    async with api.services.store.unit_of_work() as uow:
        who = await account(uow, "ada", now, {"mine": "runner", "read": "reader"})
        _, text = await token(uow, who, now)
        await uow.commit()
    headers = bearer(text)
    answer = await bulk(api, "", headers, type="pause", ids=[mine, read, hidden, MISSING])
    problems = [item["problem"] and item["problem"]["status"] for item in answer.json()["items"]]
    assert problems == [None, 403, 404, 404]
    for place in ("hidden", "nowhere"):
        query = f"?project={place}&workflow=daily"
        answer = await bulk(api, query, headers, type="pause")
        assert (answer.status_code, answer.json()) == (200, {"is_more": False, "items": []}), place
    assert await paused(api) == {mine: True, read: False, hidden: False}
    await api.services.access.auditor.settle(everything=True)
    entries = (await api.client.get(f"{PREFIX}/audit?action=schedule.pause")).json()["items"]
    by_ada = [(one["object"], one["outcome"]) for one in entries if one["principal"] == "ada"]
    assert (str(mine), "done") in by_ada
    assert (str(read), "refused") in by_ada
