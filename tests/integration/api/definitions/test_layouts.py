"""Layouts: where tasks are on the canvas, the same for everybody, beside the versions."""

from typing import Any

import httpx

from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.support.cases import each_row

WORKFLOWS = f"{PREFIX}/projects/p/workflows"
LAYOUT = f"{WORKFLOWS}/daily/layout"
BODY: dict[str, Any] = {
    "places": {"fetch": {"x": 40, "y": 120.5}, "report": {"x": -300, "y": 0}},
    "groups": {"all": ["fetch", "report"]},
    "folded": ["all"],
}


async def put(api: Api, body: dict[str, Any], tag: str | None = None) -> httpx.Response:
    """Store a layout, as who has seen what is there unless another tag is given."""
    seen = tag or (await api.client.get(LAYOUT)).headers["ETag"]
    return await api.client.put(LAYOUT, json=body, headers={"If-Match": seen})


async def test_a_layout_is_beside_the_versions_and_knows_who_has_made_it(api: Api) -> None:
    problem_of(await api.client.get(LAYOUT), 404, "not-found")
    await api.publish()
    empty = await api.client.get(LAYOUT)
    assert (empty.status_code, empty.json()["places"], empty.json()["updated_by"]) == (
        200,
        {},
        None,
    )
    stored = await put(api, BODY)
    assert stored.status_code == 200, stored.text
    read = await api.client.get(LAYOUT)
    assert {name: read.json()[name] for name in BODY} == BODY
    assert read.headers["ETag"] == stored.headers["ETag"] != empty.headers["ETag"]
    assert read.json()["updated_at"]
    assert read.json()["updated_by"]
    workflow = (await api.client.get(f"{WORKFLOWS}/daily")).json()
    assert workflow["version"] == 1
    assert "places" not in str(workflow["definition"])


async def test_nobody_writes_over_places_that_were_not_seen(api: Api) -> None:
    await api.publish()
    problem_of(await api.client.put(LAYOUT, json=BODY), 428, "precondition-required")
    first = await put(api, BODY)
    other = {**BODY, "places": {"fetch": {"x": 1, "y": 1}}}
    assert (await put(api, other)).status_code == 200
    late = await put(api, BODY, first.headers["ETag"])
    told = problem_of(late, 412, "precondition-failed")
    assert told["current"]["places"] == other["places"]
    assert (await api.client.get(LAYOUT)).json()["places"] == other["places"]


@each_row(
    "body, field",
    [
        ({}, "places"),
        ({"places": {"fetch": {"x": 1e9, "y": 0}}}, "places.fetch.x"),
        ({"places": {"fetch": {"x": "1", "y": 0}}}, "places.fetch.x"),
        ({"places": {"fetch": {"x": 1}}}, "places.fetch.y"),
        ({"places": {"a/b": {"x": 1, "y": 1}}}, "places.a/b"),
        ({"places": {}, "groups": {"g": ["a", "a"]}}, "body"),
        ({"places": {}, "groups": {"g": ["a"], "h": ["a"]}}, "body"),
        ({"places": {}, "folded": ["g"]}, "body"),
        ({"places": {f"t{n}": {"x": 0, "y": 0} for n in range(10_001)}}, "places"),
    ],
)
async def test_a_layout_that_says_nothing_clear_is_refused(
    api: Api, body: dict[str, Any], field: str
) -> None:
    await api.publish()
    problem = problem_of(await put(api, body), 422, "invalid-request")
    assert field in {
        name.removeprefix("body.").removesuffix(".[key]") for name in fields_of(problem)
    }
    assert (await api.client.get(LAYOUT)).json()["places"] == {}


async def test_a_layout_of_ten_thousand_tasks_is_stored(api: Api) -> None:
    await api.publish()
    places = {f"task_{n}": {"x": n * 240.0, "y": 0.0} for n in range(10_000)}
    stored = await put(api, {"places": places})
    assert stored.status_code == 200, stored.text
    assert len((await api.client.get(LAYOUT)).json()["places"]) == 10_000


async def test_a_layout_follows_its_workflow_and_goes_with_it(api: Api) -> None:
    await api.publish()
    stored = {**BODY["places"], "old": {"x": 9.0, "y": 9.0}}
    groups = {"all": ["fetch", "old"], "past": ["older"]}
    assert (
        await put(api, {"places": stored, "groups": groups, "folded": ["all", "past"]})
    ).status_code == 200
    source = {"project": "p", "workflow": "daily"}
    copied = await api.client.post(f"{WORKFLOWS}/copy/copy", json=source)
    assert copied.status_code == 201, copied.text
    copy = (await api.client.get(f"{WORKFLOWS}/copy/layout")).json()
    assert copy["places"] == BODY["places"]  # of tasks that the copy has
    assert (copy["groups"], copy["folded"]) == ({"all": ["fetch"]}, ["all"])
    renamed = await api.client.post(f"{WORKFLOWS}/daily/rename", json={"name": "nightly"})
    assert renamed.status_code == 200, renamed.text
    assert (await api.client.get(f"{WORKFLOWS}/nightly/layout")).json()["places"] == stored
    tag = (await api.client.get(f"{WORKFLOWS}/nightly")).headers["ETag"]
    gone = await api.client.delete(f"{WORKFLOWS}/nightly", headers={"If-Match": tag})
    assert gone.status_code == 204, gone.text
    problem_of(await api.client.get(f"{WORKFLOWS}/nightly/layout"), 404, "not-found")


async def test_readers_see_places_and_move_nothing(api: Api) -> None:
    await api.publish()
    tag = (await put(api, BODY)).headers["ETag"]
    now = api.services.store.clock()
    async with api.services.store.unit_of_work() as uow:
        _, text = await token(uow, await account(uow, "rea", now, {"p": "reader"}), now)
        await uow.commit()
    seen = await api.client.get(LAYOUT, headers=bearer(text))
    assert seen.json()["places"] == BODY["places"]
    refused = await api.client.put(
        LAYOUT, json={"places": {}}, headers={**bearer(text), "If-Match": tag}
    )
    problem_of(refused, 403, "forbidden")
    assert (await api.client.get(LAYOUT)).headers["ETag"] == tag
