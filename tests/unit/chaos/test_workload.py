"""The workload remembers every acknowledged command and names the runs that stay open.

A command that it forgets is one whose loss the checker cannot see.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos.workload.dags import program
from tests.chaos.workload.rest import Api
from tests.chaos.workload.workload import Workload


class FakeApi:
    """Keeps commands; every instance ends at once. Loses every third answer, and some requests."""

    def __init__(self) -> None:
        self.requests = 0
        self.commands: dict[str, dict[str, Any]] = {}
        self.workflows: dict[str, dict[str, Any]] = {}
        self.paused: set[int] = set()
        self.versions = [b""]  # of the program; the first is none

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if self.requests % 7 == 1:
            return httpx.Response(503)
        answer = self._answer(request)
        if self.requests % 3 == 1:
            raise httpx.ReadError("the answer got lost", request=request)
        return answer

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1")
        if request.method == "PUT" and "/resource-contents/" in path:
            return self._put(request)
        if request.method == "PUT":
            name = path.rpartition("/")[2]
            self.workflows[name] = json.loads(request.content)
            return httpx.Response(200, json={})
        if path == "/backfills":
            if request.method == "GET":
                return httpx.Response(200, json={"items": []})
            body = {"type": "BACKFILL", **json.loads(request.content)}
            accepted = self._accept(request.headers["Idempotency-Key"], body)
            return httpx.Response(202, json={"command": accepted.json()})
        if request.method == "POST":
            return self._accept(request.headers["Idempotency-Key"], json.loads(request.content))
        if path.startswith("/commands/"):
            command = next(c for c in self.commands.values() if f"/commands/{c['id']}" == path)
            return httpx.Response(200, json=command)
        if path == "/cluster":
            return httpx.Response(200, json={"backlog": {"pending_commands": 0}})
        if path == "/instances":
            items = [{"id": number, "state": "PAUSED"} for number in sorted(self.paused)]
            return httpx.Response(200, json={"items": items, "next": None})
        return httpx.Response(200, json={"state": "SUCCEEDED"})

    def _put(self, request: httpx.Request) -> httpx.Response:
        """Take a version as the API does: the same content again is no other one."""
        if request.content != self.versions[-1]:
            assert request.url.params["expected_version"] == str(len(self.versions) - 1)
            self.versions.append(request.content)
        return httpx.Response(200, json={})

    def _accept(self, key: str, body: dict[str, Any]) -> httpx.Response:
        number = len(self.commands) + 1
        instance = body.get("instance_id", number)
        if body["type"] == "RESUME":
            self.paused.discard(instance)
        outcome = {"id": number, "state": "DONE", "result_instance_id": instance, **body}
        return httpx.Response(202, json=self.commands.setdefault(key, outcome))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    monkeypatch.setattr("tests.chaos.workload.rest._PAUSE_S", 0.001)
    monkeypatch.setattr("tests.chaos.workload.workload._LOOK_S", 0.001)
    monkeypatch.setattr("tests.chaos.workload.workload._PAUSE_S", 0.001)
    monkeypatch.setattr("tests.chaos.workload.workload._EDIT_S", 0.01)
    return FakeApi()


@pytest.fixture
async def api(fake: FakeApi) -> AsyncIterator[Api]:
    async with Api("http://shoal", "token", transport=httpx.MockTransport(fake)) as opened:
        yield opened


async def test_workload_remembers_all_that_was_acknowledged(
    fake: FakeApi, api: Api, tmp_path: Path
) -> None:
    workload = Workload(api, seed=3, ledger=tmp_path / "ledger", rate=300, marker="run-3")
    await workload.start()
    while len(workload.asked) < 60:
        await asyncio.sleep(0.01)
    await workload.stop()
    fake.paused.add(1)
    assert await workload.drained(60) == []
    assert {a.key: a.ids for a in workload.asked} == {
        k: {c["id"]} for k, c in fake.commands.items()
    }
    assert all(asked.acknowledged for asked in workload.asked)
    assert len(workload.edits) > 1
    contents = [program(edit.version) for edit in workload.edits]
    assert fake.versions[1 : len(contents) + 1] == contents
    ticking = [w for name, w in fake.workflows.items() if name.startswith("ticker")]
    assert ticking
    assert not any(schedule["enabled"] for w in ticking for schedule in w["schedules"])
    assert (
        Counter(asked.type for asked in workload.asked)["START"] >= 15
    )  # at most three more for each
