"""Environments over REST."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from httpx import Response

from shoal.api.settings import ApiSettings
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api, in_process, opened, problem_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

ML: dict[str, Any] = {
    "description": "for models",
    "variables": {"A": "1"},
    "python": "/opt/venvs/ml",
    "setup": "ulimit -v 1",
    "worker_groups": ["gpu"],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(module_cluster: ClusterSettings) -> AsyncIterator[Api]:
    """The API of this module."""
    async with opened(module_cluster, ApiSettings(port=0)) as services, in_process(services) as it:
        await it.make("team")
        yield it


def path(name: str = "") -> str:
    return f"{PREFIX}/environments" + (f"/{name}" if name else "")


def workflow(name: str, **task: Any) -> tuple[str, dict[str, Any]]:
    made = {"name": "a", "type": "SHELL", "params": {"script": "true"}, **task}
    return f"{PREFIX}/projects/team/workflows/{name}", {"tasks": [made]}


def wrong(answer: Response) -> dict[str, str]:
    """What the answer says of each field."""
    errors = answer.json()["errors"]
    assert answer.status_code == 422
    return {error["field"]: error["message"] for error in errors}


async def test_what_is_set_is_shown_and_everything_is_replaced(api: Api) -> None:
    first = await api.client.put(path("ml"), json=ML)
    again = await api.client.put(path("ml"), json=ML)
    assert (first.status_code, again.status_code) == (201, 200)
    shown = (await api.client.get(path("ml"))).json()
    assert shown == {**first.json(), "workflows": []}
    assert {name: shown[name] for name in ML} == ML
    assert (shown["name"], shown["version"]) == ("ml", 1)
    less = (await api.client.put(path("ml"), json={"setup": "true"})).json()
    assert (less["setup"], less["python"], less["variables"], less["version"]) == (
        "true",
        "",
        {},
        2,
    )
    assert (await api.client.delete(path("ml"))).status_code == 204
    for answer in (await api.client.get(path("ml")), await api.client.delete(path("ml"))):
        problem_of(answer, 404, "not-found")


async def test_list_comes_in_pages(api: Api) -> None:
    for name in ("c", "a", "b"):
        await api.client.put(path(name), json=ML)
    first = (await api.client.get(path(), params={"limit": 2})).json()
    rest = (await api.client.get(path(), params={"limit": 2, "cursor": first["next"]})).json()
    assert [one["name"] for one in (*first["items"], *rest["items"])] == ["a", "b", "c"]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"variables": {"SHOAL_X": "1"}}, "variables.SHOAL_X"),
        ({"variables": {"A": 1}}, "variables.A"),
        ({"python": "venv"}, "python"),
        ({"worker_groups": ["/"]}, "worker_groups[0]"),
        ({"pyhton": "/x"}, "pyhton"),
    ],
)
async def test_mistakes_are_told_by_field(api: Api, change: dict[str, Any], field: str) -> None:
    answer = await api.client.put(path("oops"), json={**ML, **change})
    assert list(wrong(answer)) == [field]
    assert (await api.client.get(path("oops"))).status_code == 404


async def test_name_that_tasks_use_for_none_is_refused(api: Api) -> None:
    assert list(wrong(await api.client.put(path("none"), json=ML))) == ["name"]


async def test_definition_that_names_what_is_not_there_is_refused(api: Api) -> None:
    await api.client.put(path("there"), json={})
    place, body = workflow("wrong", environment="their")
    [message] = wrong(await api.client.put(place, json=body)).values()
    assert "did you mean 'there'?" in message
    assert (await api.client.put(place, params={"dry_run": True}, json=body)).status_code == 422
    place, body = workflow("wrong", environment="c")
    [message] = wrong(await api.client.put(place, json=body)).values()
    assert "is for the worker groups gpu, the task is for 'default'" in message


async def test_one_in_use_is_not_deleted_and_its_users_are_listed(api: Api) -> None:
    await api.client.put(path("used"), json={})
    place, body = workflow("uses", environment="used")
    assert (await api.client.put(place, json=body)).status_code == 201
    document = problem_of(await api.client.delete(path("used")), 409, "environment-in-use")
    assert "team/uses" in document["detail"]
    assert (await api.client.get(path("used"))).json()["workflows"] == ["team/uses"]
    place, body = workflow("uses", environment="none")
    await api.client.put(place, json=body)
    assert (await api.client.delete(path("used"))).status_code == 204
