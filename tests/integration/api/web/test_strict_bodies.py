"""JSON bodies mean what they say: no value is taken for another type, no name stands twice."""

import asyncio
import threading
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, field_validator

from shoal.api.app import create_app
from shoal.api.endpoints.guard import NOTHING, needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations import commands as commanding
from shoal.api.routes import parameters
from shoal.api.services import Services
from shoal.core.access.permissions import Permission
from tests.integration.api.conftest import PREFIX, Api, definition, fields_of, problem_of
from tests.support.cases import each_row
from tests.support.waiting import DEADLINE_S

STOP = {"type": "STOP", "instance_id": 1}
START = {"type": "START", "project": "p", "workflow": "daily"}
COMMANDS = f"{PREFIX}/commands"
GROUP = f"{PREFIX}/projects/p/concurrency-groups/g"
WORKFLOW = f"{PREFIX}/projects/p/workflows/strict"
TASK = {"name": "a", "type": "SHELL", "params": {"script": "true"}}


@each_row(
    "method, path, body, field",
    [
        ("POST", COMMANDS, STOP | {"instance_id": True}, "instance_id"),
        ("POST", COMMANDS, STOP | {"instance_id": "1"}, "instance_id"),
        ("POST", COMMANDS, STOP | {"instance_id": 1.0}, "instance_id"),
        ("POST", COMMANDS, START | {"version": True}, "version"),
        ("POST", COMMANDS, START | {"logical_time": 0}, "logical_time"),
        ("POST", COMMANDS, START | {"logical_time": "0"}, "logical_time"),
        ("POST", COMMANDS, START | {"tasks": "a"}, "tasks"),
        ("POST", COMMANDS, START | {"idempotency_key": "a\x1fb"}, "idempotency_key"),
        ("POST", COMMANDS, START | {"idempotency_key": 7}, "idempotency_key"),
        ("PUT", GROUP, {"slots": False}, "slots"),
        ("PUT", GROUP, {"slots": "4"}, "slots"),
        ("PUT", GROUP, {"slots": 4.0}, "slots"),
        ("PUT", GROUP, {"slots": 4, "description": "a\x1b[2J"}, "description"),
        ("POST", f"{PREFIX}/backfills", {"workflow": "w", "parallel": True}, "parallel"),
        ("PUT", WORKFLOW, {"tasks": [TASK | {"retries": True}]}, "tasks[0].retries"),
        ("PUT", WORKFLOW, {"tasks": [TASK | {"retries": "3"}]}, "tasks[0].retries"),
        ("PUT", WORKFLOW, {"tasks": [TASK | {"enabled": "no"}]}, "tasks[0].enabled"),
        ("PUT", WORKFLOW, {"tasks": [TASK], "max_active": 2.0}, "max_active"),
    ],
)
async def test_value_of_another_type_is_refused_at_its_field(
    api: Api, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    answer = await api.client.request(method, path, json=body)
    slug = "invalid-definition" if path == WORKFLOW else "invalid-request"
    assert field in fields_of(problem_of(answer, 422, slug))


async def test_times_in_queries_are_written_as_times(api: Api) -> None:
    for value in ("0.5", "1700000000"):
        answer = await api.client.get(f"{PREFIX}/instances", params={"until": value})
        assert (
            "such as 2026-01-31" in fields_of(problem_of(answer, 422, "invalid-request"))["until"]
        )


@each_row(
    "content, name",
    [
        ('{"type": "STOP", "instance_id": 1, "instance_id": 2}', "instance_id"),
        ('{"type": "START", "workflow": "w", "parameters": {"a": "1", "a": "2"}}', "a"),
        ('{"type": "START", "workflow": "w", "parameters": {"a": "1", "\\u0061": "2"}}', "a"),
    ],
)
async def test_name_that_stands_twice_is_refused(api: Api, content: str, name: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await api.client.post(COMMANDS, content=content, headers=headers)
    found = fields_of(problem_of(answer, 422, "invalid-request"))
    assert found == {name: "stands twice in the same object"}


async def test_many_mistakes_make_a_short_answer(api: Api) -> None:
    await api.publish()
    many = {f"no{n}": "x" for n in range(3_000)}
    answer = await api.client.post(COMMANDS, json=START | {"parameters": many})
    assert len(problem_of(answer, 422, "invalid-request")["errors"]) == 100
    answer = await api.client.post(COMMANDS, json=START | {"tasks": list(many)[:1_000]})
    assert len(problem_of(answer, 422, "invalid-request")["errors"]) == 100
    answer = await api.client.post(COMMANDS, json=START | {"tasks": [1] * 1_000})
    assert len(problem_of(answer, 422, "invalid-request")["errors"]) == 100


@pytest.mark.parametrize("what", ["a value", "chosen tasks"])
async def test_others_are_answered_while_a_large_body_is_checked(
    api: Api, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The check goes on until somebody else has been answered: in the loop that would be never."""
    await api.publish(name="daily", **definition())
    answered = threading.Event()

    def wait(*_: object) -> None:
        assert answered.wait(DEADLINE_S / 2), "nobody was answered meanwhile"

    if what == "a value":
        monkeypatch.setattr(parameters, "definition_problem", wait)
        request = api.client.put(f"{PREFIX}/projects/p/parameters/x", json={"value": "$[x]"})
    else:
        monkeypatch.setattr(commanding, "check_tasks", wait)
        request = api.client.post(COMMANDS, json=START | {"tasks": ["fetch"]})
    checking = asyncio.create_task(request)
    await asyncio.sleep(0)
    assert (await api.client.get(f"{PREFIX}/health/live")).status_code == 200
    answered.set()
    assert (await checking).status_code in (201, 202)


async def test_large_bodies_are_validated_beside_the_event_loop(services: Services) -> None:
    seen: list[int] = []

    class Body(BaseModel):
        texts: list[str]

        @field_validator("texts")
        @classmethod
        def _note(cls, texts: list[str]) -> list[str]:
            seen.append(threading.get_ident())
            if texts[0] == "bad":
                raise ValueError("nobody wants this")
            return texts

    router = strict_router("probe")

    @router.post("/probe")
    @needs(Permission.SIGNED_IN, audit=NOTHING)
    async def probe(body: Body) -> int:
        return len(body.texts)

    app = create_app(services)
    app.include_router(router, prefix=PREFIX)
    headers = {"Authorization": f"Bearer {services.token}"}
    transport = httpx.ASGITransport(app)
    large = ["x" * 1000] * 100
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as client:
        answer = await client.post(f"{PREFIX}/probe", json={"texts": ["small"]})
        assert (answer.json(), seen) == (1, [threading.get_ident()])
        seen.clear()
        answer = await client.post(f"{PREFIX}/probe", json={"texts": large})
        assert answer.json() == 100
        assert len(seen) == 1  # once
        assert seen != [threading.get_ident()]
        answer = await client.post(f"{PREFIX}/probe", json={"texts": ["bad", *large]})
        assert fields_of(problem_of(answer, 422, "invalid-request")) == {
            "texts": "nobody wants this"
        }
        answer = await client.post(f"{PREFIX}/probe", json={"texts": [*large, 7]})
        assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == {"texts[100]"}
