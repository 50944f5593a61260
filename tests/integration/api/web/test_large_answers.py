"""Answers about many tasks are made in a thread, and say the same."""

import threading
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from shoal.api.access import audit
from shoal.api.operations.authoring import checks
from shoal.api.operations.runs import rendered
from shoal.api.web import answers, body
from tests.integration.api.conftest import PREFIX, Api, definition

PATHS = (
    "/instances/{run}",
    "/instances/{run}?attempts=all",
    "/projects/p/workflows/daily",
    "/projects/p/workflows/daily/versions/1",
)


async def test_large_answers_are_made_elsewhere_and_say_the_same(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await api.run(parameters='with "quotes" and ünïcode')
    threads: list[threading.Thread] = []
    pieces = answers._pieces

    def noted(model: BaseModel) -> Any:
        threads.append(threading.current_thread())
        return pieces(model)

    async def said() -> list[Any]:
        found = []
        for path in PATHS:
            answer = await api.client.get(PREFIX + path.format(run=run.id))
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == "application/json"
            found.append(answer.json())
        tried = await api.client.put(
            f"{PREFIX}/projects/p/workflows/daily?dry_run=true",
            json=definition(description="another one"),
        )
        return [*found, tried.json()]

    monkeypatch.setattr(answers, "_pieces", noted)
    small = await said()
    assert set(threads) == {threading.current_thread()}
    monkeypatch.setattr(answers, "MOST_AT_ONCE", 1)
    threads.clear()
    assert await said() == small
    assert len(threads) == len(PATHS) + 1
    assert threading.current_thread() not in threads


async def test_work_on_many_tasks_and_large_bodies_leaves_the_event_loop(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.publish()
    threads: dict[str, set[threading.Thread]] = {}

    def watch(module: ModuleType, name: str) -> None:
        work = getattr(module, name)

        def noted(*args: Any) -> Any:
            threads.setdefault(name, set()).add(threading.current_thread())
            return work(*args)

        monkeypatch.setattr(module, name, noted)

    async def said() -> list[Any]:
        threads.clear()
        start = {"project": "p", "workflow": "daily", "logical_time": "2026-03-01T00:00:00Z"}
        preview = await api.client.post(f"{PREFIX}/start-previews", json=start)
        changed = definition(description="another one")
        plan = await api.client.post(
            f"{PREFIX}/projects/p/workflows/daily/plan", json={"definition": changed}
        )
        assert (preview.status_code, plan.status_code) == (200, 200), plan.text
        assert threads.keys() == {"_run_of", "_foreign", "reaches", "_detail_of"}
        return [preview.json(), plan.json()]

    for module, name in (
        (rendered, "_run_of"),
        (checks, "_foreign"),
        (checks, "reaches"),
        (audit, "_detail_of"),
    ):
        watch(module, name)
    small = await said()
    assert set.union(*threads.values()) == {threading.current_thread()}
    for large in (rendered, checks):
        monkeypatch.setattr(large, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(body, "INLINE_BYTES", 1)
    assert await said() == small
    assert threading.current_thread() not in set.union(*threads.values())


def test_answers_are_those_of_the_model() -> None:
    class Inner(BaseModel):
        text: str
        value: Any = None

    class Outer(BaseModel):
        name: str
        many: list[Inner]
        plain: dict[str, Any]
        names: list[str]
        last: int

    for many in ([], [Inner(text='a "b"')], [Inner(text="ü", value={"z": [1, None]})] * 3):
        made = Outer(name="n\n", many=many, plain={"b": {"c": 1.5}}, names=["x", "y"], last=1)
        text = "".join(answers._pieces(made))
        assert Outer.model_validate_json(text) == made
