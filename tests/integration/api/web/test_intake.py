"""Commands that arrive together are stored together, and none can spoil it for the others."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from shoal.api.services import Services
from shoal.coordination.cluster import layout
from shoal.coordination.session.wire import Stat
from shoal.core.access.audit.entries import NewEntry
from shoal.core.runs.commands import Command, CommandType, NewCommand
from shoal.sql import UnitOfWork
from shoal.sql.errors import BrokenReference
from shoal.sql.repositories.runs.commands import Commands
from tests.integration.api.conftest import Api
from tests.support.waiting import eventually


def start(key: str, workflow_id: int = 1) -> NewCommand:
    """A START with a key of its own."""
    return NewCommand(CommandType.START, 1, key, workflow_id)


class Asked:
    """A request, as the audit knows it."""

    async def entry(self, _: UnitOfWork) -> NewEntry:
        """Return its entry."""
        return NewEntry(at=datetime.now(UTC), action="command.start")


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commands went into each transaction."""
    sizes: list[int] = []
    add_many = Commands.add_many

    async def counted(
        self: Commands, new: Sequence[NewCommand], at: datetime
    ) -> list[tuple[Command, bool]]:
        sizes.append(len(new))
        return await add_many(self, new, at)

    monkeypatch.setattr(Commands, "add_many", counted)
    return sizes


async def _added_behind_another(services: Services, *new: NewCommand) -> list[object]:
    """Add commands while another transaction holds the database; return what became of each."""
    async with services.store.unit_of_work():
        adding = [asyncio.create_task(services.intake.add(one, Asked())) for one in new]
        await eventually(lambda: len(services.intake) == len(new))
    return list(await asyncio.gather(*adding, return_exceptions=True))


async def test_commands_that_arrive_together_share_a_transaction(
    api: Api, batches: list[int]
) -> None:
    await api.publish()
    batches.clear()
    results = await _added_behind_another(api.services, *(start(f"k{i}") for i in range(20)))
    assert all(isinstance(result, tuple) and result[1] for result in results), results
    assert batches == [1, 19]


async def test_the_same_key_twice_in_one_transaction_is_one_command(api: Api) -> None:
    await api.publish()
    results = await _added_behind_another(api.services, *(start(k) for k in ("a", "b", "b", "a")))
    ids = [result[0].id for result in results if isinstance(result, tuple)]
    assert ids[0] == ids[3]
    assert ids[1] == ids[2]
    assert [result[1] for result in results if isinstance(result, tuple)].count(True) == 2


async def test_one_that_cannot_be_stored_fails_alone(api: Api) -> None:
    await api.publish()
    results = await _added_behind_another(
        api.services, start("a"), start("b"), start("c", workflow_id=4711), start("d")
    )
    assert isinstance(results.pop(2), BrokenReference)
    assert all(isinstance(result, tuple) for result in results), results


async def test_a_request_that_ends_early_holds_up_nobody(api: Api) -> None:
    await api.publish()
    async with api.services.store.unit_of_work():
        adding = [asyncio.create_task(api.services.intake.add(start(k), Asked())) for k in "abc"]
        await eventually(lambda: len(api.services.intake) == len(adding))
        adding[0].cancel()
        adding[1].cancel()
    results = await asyncio.gather(*adding, return_exceptions=True)
    assert isinstance(results[2], tuple)


async def test_the_owner_is_notified_for_before_the_request_is_answered(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.publish()
    session, written = api.services.cluster.session, list[str]()
    write = session.set

    def noted(path: str, data: bytes) -> asyncio.Future[Stat]:
        written.append(path)
        return write(path, data)

    monkeypatch.setattr(session, "set", noted)
    await api.services.intake.add(start("k"), Asked())
    assert written == [layout.notification(1)]
