"""Who is behind a credential, as it is now: on the process that changes rights, and on others."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.access.identities import LOOK_S, Credential, Identities
from shoal.api.access.tokens import new_session, new_token
from shoal.core.access.permissions import Permission, Role
from shoal.core.access.principals import Principal, PrincipalKind, TokenScope
from shoal.core.access.records import HolderKind
from shoal.sql import Database, UnitOfWork
from shoal.sql.repositories.access.rights import Rights, SignedIn
from tests.integration.api.access.people import account, session, token
from tests.support.waiting import eventually

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
IDLE_S = 30 * 60.0
IDLE = timedelta(seconds=IDLE_S)
BREAK_GLASS = "a token of the data folder"
HOUR = timedelta(hours=1)


class Clock:
    """The cluster's time and that of this process, which pass together when a test says so."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def now(self) -> datetime:
        """Return the cluster's time."""
        return START + timedelta(seconds=self.passed_s)

    def monotonic(self) -> float:
        """Return the seconds of this process."""
        return 1_000.0 + self.passed_s


class World:
    """A user, and two API processes on one database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database, self.clock = database, clock
        made = [
            Identities(database, clock.now, BREAK_GLASS, IDLE, clock.monotonic) for _ in range(2)
        ]
        self.here, self.there = made
        self.ada = 0
        self.token, self.session = Credential(""), Credential("")

    async def change(self, write: Callable[[UnitOfWork], Awaitable[object]]) -> None:
        """Change something, and tell the one of the processes that has done it."""
        async with self.database.unit_of_work() as uow:
            await write(uow)
            await uow.commit()
        self.here.changed()

    async def both(self, credential: Credential) -> list[SignedIn | None]:
        """Return who it is on either process, a moment later: within a second."""
        found = [await self.here.find(credential)]
        assert LOOK_S <= 1.0
        self.clock.passed_s += LOOK_S
        return [*found, await self.there.find(credential)]

    async def principals(self, credential: Credential) -> list[Principal]:
        """Return who it is on either process; it must be somebody."""
        found = await self.both(credential)
        return [one.principal for one in found if one is not None]


@pytest.fixture
def clock() -> Clock:
    """Time that passes when a test says so."""
    return Clock()


@pytest.fixture
async def world(sqlite_url: str, clock: Clock) -> AsyncIterator[World]:
    """Ada, a writer of a project, with a token and a session that both processes know."""
    async with Database(sqlite_url) as database:
        world = World(database, clock)
        async with database.unit_of_work() as uow:
            await uow.projects.ensure("p", START)
            world.ada = await account(uow, "ada", START, {"p": "writer"}, is_admin=True)
            await account(uow, "other", START, is_admin=True)
            _, text = await token(uow, world.ada, START, lasts=HOUR)
            world.token = Credential(text)
            _, text = await session(uow, world.ada, START, HOUR)
            world.session = Credential(text, is_session=True)
            await uow.commit()
        for credential in (world.token, world.session):
            assert [one.name for one in await world.principals(credential)] == ["ada", "ada"]
        yield world
        for identities in (world.here, world.there):
            await identities.aclose()


async def test_revoked_token_is_worthless_on_every_process(world: World) -> None:
    await world.change(lambda uow: uow.tokens.revoke_all(world.ada, START))
    assert await world.both(world.token) == [None, None]
    assert len(await world.principals(world.session)) == 2


async def test_one_revoked_token_leaves_the_others(world: World) -> None:
    async with world.database.unit_of_work() as uow:
        token_id, text = await token(uow, world.ada, START)
        await uow.commit()
    assert len(await world.principals(Credential(text))) == 2
    await world.change(lambda uow: uow.tokens.revoke(world.ada, token_id, START))
    assert await world.both(Credential(text)) == [None, None]
    assert len(await world.principals(world.token)) == 2


async def test_ended_session_is_over_on_every_process(world: World) -> None:
    await world.change(lambda uow: uow.sessions.end_all(world.ada))
    assert await world.both(world.session) == [None, None]
    assert len(await world.principals(world.token)) == 2


async def test_disabled_account_is_nobody_and_enabled_again_somebody(world: World) -> None:
    await world.change(lambda uow: uow.principals.disable(world.ada, START))
    assert await world.both(world.token) == [None, None]
    assert await world.both(world.session) == [None, None]
    await world.change(lambda uow: uow.principals.enable(world.ada))
    assert len(await world.principals(world.token)) == 2


async def test_other_roles_count_on_every_process(world: World) -> None:
    async def demote(uow: UnitOfWork) -> None:
        await uow.members.put(1, HolderKind.USER, "ada", Role.READER)
        await uow.principals.set_admin(world.ada, False)

    await world.change(demote)
    for who in await world.principals(world.token):
        assert who.roles == {1: Role.READER}
        assert not who.is_admin
    await world.change(lambda uow: uow.members.remove(1, HolderKind.USER, "ada"))
    for who in await world.principals(world.session):
        assert who.roles == {}


async def test_roles_of_groups_come_and_go(world: World) -> None:
    async def join(uow: UnitOfWork) -> None:
        await uow.groups.add("crew", "", START)
        await uow.groups.add_member("crew", world.ada)
        await uow.members.put(1, HolderKind.GROUP, "crew", Role.OWNER)

    await world.change(join)
    assert [who.roles for who in await world.principals(world.token)] == [{1: Role.OWNER}] * 2
    await world.change(lambda uow: uow.groups.remove_member("crew", world.ada))
    assert [who.roles for who in await world.principals(world.token)] == [{1: Role.WRITER}] * 2
    await world.change(lambda uow: uow.groups.add_member("crew", world.ada))
    await world.change(lambda uow: uow.groups.delete("crew"))
    assert [who.roles for who in await world.principals(world.token)] == [{1: Role.WRITER}] * 2


async def test_password_that_has_to_be_changed_is_known_on_every_process(world: World) -> None:
    await world.change(lambda uow: uow.principals.set_password(world.ada, "h", must_change=True))
    assert [who.must_change_password for who in await world.principals(world.token)] == [True] * 2


async def test_credentials_expire_although_they_are_remembered(world: World) -> None:
    for _ in range(8):  # in use all the time
        world.clock.passed_s += 7.4 * 60
        await world.both(world.token)
        await world.both(world.session)
        await _stored(world)
    world.clock.passed_s = HOUR.total_seconds() - 1
    assert len(await world.principals(world.token)) == 2
    world.clock.passed_s = HOUR.total_seconds()
    assert await world.both(world.token) == [None, None]
    assert await world.both(world.session) == [None, None]


async def test_session_that_is_not_used_ends(world: World) -> None:
    world.clock.passed_s = IDLE_S - 2
    assert len(await world.principals(world.token)) == 2
    world.clock.passed_s = IDLE_S
    assert await world.both(world.session) == [None, None]
    assert len(await world.principals(world.token)) == 2  # tokens are not used all the time


@pytest.mark.parametrize("idle_s", [60.0, IDLE_S])
async def test_session_that_is_used_goes_on(world: World, clock: Clock, idle_s: float) -> None:
    identities = Identities(
        world.database, clock.now, BREAK_GLASS, timedelta(seconds=idle_s), clock.monotonic
    )
    while clock.passed_s < 2 * idle_s:
        clock.passed_s += 0.4 * idle_s
        if clock.passed_s < HOUR.total_seconds():
            assert await identities.find(world.session) is not None
        await eventually(lambda: not identities._tasks)


async def _stored(world: World) -> None:
    for identities in (world.here, world.there):
        await eventually(lambda one=identities: not one._tasks)  # type: ignore[misc]


async def test_answer_from_before_a_change_is_not_remembered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights are revoked, and that is seen, while an answer from before is still on its way."""
    world.here.changed()
    world.here._known.clear()
    read = Rights.of_token

    async def slowly(self: Rights, digest: str, at: datetime) -> SignedIn | None:
        found = await read(self, digest, at)
        monkeypatch.setattr(Rights, "of_token", read)
        await world.change(lambda uow: uow.tokens.revoke_all(world.ada, START))
        assert await world.here.find(world.session) is not None  # sees that rights have changed
        return found

    monkeypatch.setattr(Rights, "of_token", slowly)
    assert await world.here.find(world.token) is not None  # it was asked before
    assert await world.here.find(world.token) is None


async def test_scope_is_read_with_the_token_and_what_is_unknown_gives_nothing(
    world: World, sqlite_url: str
) -> None:
    scope = TokenScope(frozenset({Permission.PROJECT_READ}), frozenset({1}))
    async with world.database.unit_of_work() as uow:
        _, text = await token(uow, world.ada, START, scope)
        await uow.commit()
    assert [who.scope for who in await world.principals(Credential(text))] == [scope, scope]
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as database:
        database.execute("UPDATE api_token SET permissions = '[\"of.tomorrow\"]'")
        database.commit()
    world.here.changed()
    fresh = Identities(world.database, world.clock.now, BREAK_GLASS, IDLE, world.clock.monotonic)
    found = await fresh.find(Credential(text))
    assert found is not None
    assert found.principal.scope.permissions == frozenset()


async def test_kinds_of_credentials_are_not_taken_for_each_other(world: World) -> None:
    for credential in (
        Credential(world.token.text, is_session=True),
        Credential(world.session.text),
        Credential(BREAK_GLASS, is_session=True),
        Credential(new_token()),
        Credential(new_session(), is_session=True),
        Credential(""),
        Credential("é"),
        Credential("", is_session=True),
    ):
        assert await world.here.find(credential) is None
    found = await world.here.find(Credential(BREAK_GLASS))
    assert found is not None
    assert found.principal.kind is PrincipalKind.BREAK_GLASS


async def test_stream_is_told_when_its_credential_is_worthless(
    world: World,
) -> None:
    world.there.look_s = 0.01
    async with (
        world.there.watching(world.token, lambda who: bool(who.roles)) as of_token,
        world.there.watching(world.session, lambda who: bool(who.roles)) as of_session,
    ):
        await world.change(lambda uow: uow.tokens.revoke_all(world.ada, START))
        world.clock.passed_s += 1
        await eventually(of_token.is_set)
        assert not of_session.is_set()
        await world.change(lambda uow: uow.members.remove(1, HolderKind.USER, "ada"))
        world.clock.passed_s += 1
        await eventually(of_session.is_set)


def _dump(file: str) -> Iterator[str]:
    with closing(sqlite3.connect(file)) as database:
        yield from database.iterdump()


async def test_no_text_of_a_token_or_session_is_stored(world: World, sqlite_url: str) -> None:
    stored = "\n".join(_dump(sqlite_url.removeprefix("sqlite:///")))
    assert "api_token" in stored
    for credential in (world.token, world.session):
        assert credential.text not in stored
        assert credential.text.removeprefix("shoal_pat_")[:20] not in stored
