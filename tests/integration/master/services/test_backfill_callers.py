"""A backfill reaches other projects as far as grants, and its caller's rights, allow it then."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from shoal.core.access.grants import Grant
from shoal.core.access.permissions import Role
from shoal.core.access.principals import PrincipalKind
from shoal.core.access.records import HolderKind, NewAccount
from shoal.core.backfill.request import BackfillRunState, BackfillState
from shoal.core.runs.commands import Command, CommandState, CommandType
from shoal.sql import Database
from tests.integration.master.services.backfill_harness import PARTITIONS, Harness, Master
from tests.support.clock import utc_now
from tests.support.database.databases import migrated, migrated_url

WAITING = {
    "name": "a",
    "type": "DEPENDENT",
    "params": {"when": {"project": "default", "workflow": "w", "date": "today"}},
}
S = BackfillRunState


class People:
    """Projects "default" and "theirs", whose workflow waits for "w", and somebody with roles."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.harness = Harness(database)
        self.homes: dict[str, int] = {}
        self.ada = 0

    async def begin(self) -> None:
        await self.harness.publish()
        await self.harness.publish("behind", project="theirs", tasks=[WAITING])
        async with self.database.unit_of_work() as uow:
            for name in ("default", "theirs"):
                self.homes[name] = (await uow.projects.get(name)).id
            stored = await uow.principals.add(NewAccount(PrincipalKind.USER, "ada"), utc_now())
            self.ada = stored.id
            await uow.commit()
        await self.grant(Grant.SEE)
        for name in self.homes:
            await self.role(name)

    async def role(self, project: str, role: Role = Role.RUNNER) -> None:
        async with self.database.unit_of_work() as uow:
            await uow.members.put(self.homes[project], HolderKind.USER, "ada", role)
            await uow.commit()

    async def no_role(self, project: str) -> None:
        async with self.database.unit_of_work() as uow:
            await uow.members.remove(self.homes[project], HolderKind.USER, "ada")
            await uow.commit()

    async def grant(self, what: Grant | None) -> None:
        async with self.database.unit_of_work() as uow:
            if what is None:
                await uow.grants.remove(self.homes["default"], "theirs")
            else:
                await uow.grants.put(self.homes["default"], "theirs", what, utc_now())
            await uow.commit()

    async def ask(self, key: str = "k", judged: tuple[str, ...] = ("default", "theirs")) -> Command:
        return await self.harness.ask_as(
            self.ada,
            [self.homes[one] for one in judged],
            key,
            dates=["2026-01-01"],
            downstream="all",
            parallel=2,
        )


@pytest.fixture(params=["sqlite", "postgresql"])
async def people(request: pytest.FixtureRequest) -> AsyncIterator[People]:
    async with migrated(migrated_url(request, request.param), PARTITIONS) as database:
        made = People(database)
        await made.begin()
        yield made


async def test_it_runs_what_is_downstream_in_another_project_with_grant_and_rights(
    people: People,
) -> None:
    async with Master(people.database).working() as master:
        command = await people.ask()
        await master.poll()
    assert (await people.harness.stored(command)).state is CommandState.DONE
    assert len(await people.harness.runs()) == 2


async def test_a_grant_that_is_gone_when_the_master_plans_leaves_the_project_out(
    people: People,
) -> None:
    command = await people.ask()
    await people.grant(None)
    async with Master(people.database).working() as master:
        await master.poll()
    assert (await people.harness.stored(command)).state is CommandState.DONE
    assert len(await people.harness.runs()) == 1


async def _lose_role(people: People) -> None:
    await people.no_role("theirs")


async def _become_reader(people: People) -> None:
    await people.role("theirs", Role.READER)


async def _lose_own_role(people: People) -> None:
    await people.no_role("default")


async def _be_disabled(people: People) -> None:
    async with people.database.unit_of_work() as uow:
        await uow.principals.disable(people.ada, utc_now())
        await uow.commit()


LOSSES = pytest.mark.parametrize("lose", [_lose_role, _become_reader, _lose_own_role, _be_disabled])


@LOSSES
async def test_rights_that_are_gone_when_the_master_plans_are_not_used(
    people: People, lose: Callable[[People], Awaitable[None]]
) -> None:
    command = await people.ask()
    await lose(people)
    async with Master(people.database).working() as master:
        await master.poll()
    reason = await people.harness.reason(command)
    assert "run.operate" in reason
    assert "theirs" not in reason
    assert await people.harness.instances() == []


async def test_a_project_that_the_api_has_not_judged_is_not_reached(people: People) -> None:
    """The token may have been limited to the others."""
    command = await people.ask(judged=("default",))
    async with Master(people.database).working() as master:
        await master.poll()
    assert "run.operate" in await people.harness.reason(command)


@LOSSES
async def test_requests_about_it_need_the_rights_of_that_moment(
    people: People, lose: Callable[[People], Awaitable[None]]
) -> None:
    async with Master(people.database).working() as master:
        await people.ask()
        await master.poll()
        backfill = await people.harness.backfill()
        paused = await people.harness.request(CommandType.PAUSE_BACKFILL, backfill, "p", people.ada)
        await master.poll()
        assert (await people.harness.stored(paused)).state is CommandState.DONE
        resumed = await people.harness.request(
            CommandType.RESUME_BACKFILL, backfill, "r", people.ada
        )
        await lose(people)
        await master.poll()
    assert "run.operate" in await people.harness.reason(resumed)
    assert await people.harness.state() is BackfillState.PAUSED


async def test_dates_of_a_backfill_that_is_there_go_on(people: People) -> None:
    async with Master(people.database).working() as master:
        await people.ask()
        await master.poll()
        await _be_disabled(people)
        [first] = await people.harness.runs(S.STARTED)
        await master.end(first)
        await master.poll()
        assert [run.state for run in await people.harness.runs(S.WAITING)] == []
