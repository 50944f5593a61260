"""What one caller uses up is refused to that caller, and to no other."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest

from shoal.api.settings import ApiSettings
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, problem_of
from tests.integration.api.sse_reader import stream
from tests.support.waiting import DEADLINE_S

STREAMS, COMMANDS = 2, 3


@pytest.fixture
def settings() -> ApiSettings:
    """Limits that a test reaches soon."""
    return ApiSettings(
        port=0,
        heartbeat_s=0.1,
        streams_per_caller=STREAMS,
        commands_per_minute=1,
        commands_at_once=COMMANDS,
    )


@asynccontextmanager
async def caller(api: Api, name: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a runner of the project p."""
    async with api.services.store.unit_of_work() as uow:
        now = api.services.store.clock()
        who = await account(uow, name, now, {"p": "runner"})
        _, text = await token(uow, who, now)
        await uow.commit()
    async with httpx.AsyncClient(
        base_url=api.client.base_url, headers=bearer(text), timeout=DEADLINE_S, trust_env=False
    ) as client:
        yield client


async def test_caller_with_too_many_streams_gets_no_other_and_everybody_else_does(
    live: Api,
) -> None:
    async with caller(live, "ada") as ada, caller(live, "bob") as bob, AsyncExitStack() as first:
        for _ in range(STREAMS):
            reader = await first.enter_async_context(stream(ada, f"{PREFIX}/events"))
            assert (await reader.next(comments=True)) is not None
        async with ada.stream("GET", f"{PREFIX}/events") as refused:
            assert refused.status_code == 429  # a stream would be read without end
            await refused.aread()
        problem_of(refused, 429, "too-many-requests")
        assert int(refused.headers["Retry-After"]) >= 1
        assert "ada has 2 event streams open" in refused.json()["detail"]
        async with stream(bob, f"{PREFIX}/events") as other:
            assert (await other.next(comments=True)) is not None
        assert (await ada.get(f"{PREFIX}/projects")).status_code == 200
        # A refused one counts for nothing, and one that has ended neither.
        await first.aclose()
        for _ in range(200):
            answer = await ada.head(f"{PREFIX}/events")
            if answer.status_code == 200:
                break
        assert answer.status_code == 200


async def test_caller_with_too_many_commands_waits_and_nobody_else_does(live: Api) -> None:
    await live.publish()
    body = {"type": "START", "project": "p", "workflow": "daily"}
    async with caller(live, "ada") as ada, caller(live, "bob") as bob:
        statuses = []
        for _ in range(COMMANDS + 1):
            answer = await ada.post(f"{PREFIX}/commands", json=body)
            statuses.append(answer.status_code)
        assert statuses == [202] * COMMANDS + [429]
        problem_of(answer, 429, "too-many-requests")
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        # Many at once are one request, and counted like the others.
        many = {"type": "STOP", "ids": [1, 2]}
        assert (await ada.post(f"{PREFIX}/bulk-commands", json=many)).status_code == 429
        assert (await bob.post(f"{PREFIX}/commands", json=body)).status_code == 202
    for _ in range(2 * COMMANDS):  # who has the token of the data folder runs the cluster
        await live.command(**body)
