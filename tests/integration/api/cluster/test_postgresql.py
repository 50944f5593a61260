"""The same API on PostgreSQL: what depends on the kind of database."""

import asyncio
import json

import pytest

from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api, definition
from tests.integration.api.sse_reader import stream


@pytest.fixture
def cluster(cluster: ClusterSettings, postgresql_url: str) -> ClusterSettings:
    """The cluster of one test, on PostgreSQL."""
    return cluster.model_copy(update={"database_url": postgresql_url})


async def test_from_publishing_to_the_events_of_a_run(live: Api) -> None:
    async with stream(live.client, f"{PREFIX}/events") as reader:
        run = await live.run()
        kinds = []
        for _ in range(2):
            event = await reader.next()
            assert event is not None
            kinds.append((event.kind, json.loads(event.data)["instance_id"]))
    assert kinds == [("workflow.published", None), ("instance.state", run.id)]
    shown = (await live.client.get(f"{PREFIX}/instances/{run.id}")).json()
    assert shown["task_counts"] == {"WAITING": 2}
    cluster = (await live.client.get(f"{PREFIX}/cluster")).json()
    assert cluster["database"].pop("latency_s") > 0
    assert cluster["database"] == {"kind": "postgresql"}


async def test_publishers_and_starters_at_once(api: Api) -> None:
    path = f"{PREFIX}/projects/p/workflows/daily"
    answers = await asyncio.gather(
        *(api.client.put(path, json=definition(description=f"{n % 2}")) for n in range(8))
    )
    new = [answer.json() for answer in answers if answer.status_code == 201]
    created = sorted(new, key=lambda answer: answer["version"])
    assert [answer["version"] for answer in created] == list(range(1, len(created) + 1))
    for answer in created[1:]:
        assert [change["path"] for change in answer["diff"]] == ["description"]
    start = {"type": "START", "project": "p", "workflow": "daily", "idempotency_key": "k"}
    commands = await asyncio.gather(
        *(api.client.post(f"{PREFIX}/commands", json=start) for _ in range(8))
    )
    assert {answer.status_code for answer in commands} == {202}
    assert len({answer.json()["id"] for answer in commands}) == 1


async def test_values_that_the_database_cannot_keep_are_no_surprise(api: Api) -> None:
    for path in ("workflows?project=", "workflows?search=", "instances?project=", "projects/"):
        answer = await api.client.get(f"{PREFIX}/{path}%00")
        assert answer.status_code in (200, 404, 422), answer.text
    far = await api.client.get(f"{PREFIX}/instances?until=9999-12-31T23:59:59Z")
    assert far.json() == {"items": [], "next": None}
