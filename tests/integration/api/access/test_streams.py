"""S14: a stream that is open ends when its caller may not follow it any more."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import pytest

from shoal.api.access.identities import LOOK_S
from shoal.api.services import Services
from shoal.core.access.principals import EVERYTHING
from shoal.core.access.records import HolderKind
from shoal.core.runs.states import TaskState
from shoal.runtime.settings import ClusterSettings
from shoal.sql import UnitOfWork
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api
from tests.integration.api.fake_worker import FakeWorker, fake_worker
from tests.integration.api.runs.attempts import set_state
from tests.integration.api.sse_reader import stream


@pytest.fixture
async def worker(services: Services, cluster: ClusterSettings) -> AsyncIterator[FakeWorker]:
    """A worker registered as w1."""
    async with fake_worker(services, cluster) as found:
        yield found


Revoke = Callable[[UnitOfWork, int, int], Awaitable[object]]


async def _role(uow: UnitOfWork, _: int, project: int) -> None:
    await uow.members.remove(project, HolderKind.USER, "ada")


async def _token(uow: UnitOfWork, ada: int, _: int) -> None:
    await uow.tokens.revoke_all(ada, datetime.now(UTC))


@pytest.mark.parametrize("revoke", [_role, _token])
@pytest.mark.parametrize("kind", ["log", "events"])
async def test_stream_ends_with_the_rights_to_it(
    live: Api, worker: FakeWorker, kind: str, revoke: Revoke
) -> None:
    """The change comes from another process: this one is not told, and looks by itself."""
    run = await live.run()
    task = await set_state(live, run, TaskState.RUNNING, "w1")
    log = worker.log(task)
    await log.write(b"seen\n")
    async with live.services.store.unit_of_work() as uow:
        now = datetime.now(UTC)
        ada = await account(uow, "ada", now, {"p": "reader"})
        project = (await uow.projects.get("p")).id
        _, text = await token(uow, ada, now, EVERYTHING)
        await uow.commit()
    path = f"{PREFIX}/events"
    if kind == "log":
        path = f"{PREFIX}/task-instances/{task['id']}/log/follow"
    async with stream(live.client, path, **bearer(text)) as reader:
        if kind == "log":
            event = await reader.next()
            assert event is not None
            assert "seen" in event.data
        async with live.services.store.unit_of_work() as uow:
            await revoke(uow, ada, project)
            await uow.commit()
        assert LOOK_S < 1  # how long it may take
        last = await reader.next(comments=True)
        assert last is not None
        assert "rights have changed" in last.comment
        await log.write(b"a secret\n", finished=True)
        assert await reader.next(comments=True) is None
    if kind == "log":
        refused = await live.client.get(path, headers=bearer(text))
        assert refused.status_code == (401 if revoke is _token else 404)
