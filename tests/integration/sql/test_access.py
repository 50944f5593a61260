"""Principals, groups, roles, sessions and tokens in both databases."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from shoal.core.access.permissions import Permission, Role
from shoal.core.access.principals import EVERYTHING, PrincipalKind, Scope
from shoal.core.access.records import HolderKind
from shoal.core.access.things import Thing
from shoal.sql import Database
from shoal.sql.errors import AccountExists, LastAdministrator, NotFound
from shoal.sql.repositories.access.principals import NewAccount
from tests.integration.sql.given import NOW, accepted, published, start

HOUR = timedelta(hours=1)
USER = PrincipalKind.USER


async def _account(database: Database, name: str, *, is_admin: Any = False) -> int:
    async with database.unit_of_work() as uow:
        made = await uow.principals.add(NewAccount(USER, name, is_admin=is_admin), NOW)
        await uow.commit()
    return made.id


async def test_names_that_differ_in_case_alone_are_the_same(database: Database) -> None:
    ada = await _account(database, "Ada")
    async with database.unit_of_work() as uow:
        assert (await uow.principals.get("ADA")).id == ada
        with pytest.raises(AccountExists):
            await uow.principals.add(NewAccount(USER, "aDa"), NOW)


async def test_of_several_first_administrators_one_is_made(database: Database) -> None:
    async def first(name: str) -> bool:
        async with database.unit_of_work() as uow:
            made = await uow.principals.add_first(NewAccount(USER, name, is_admin=True), NOW)
            await uow.commit()
        return made

    made = await asyncio.gather(*(first(f"admin{number}") for number in range(4)))
    assert sum(made) == 1


async def test_two_administrators_do_not_take_each_others_rights_at_once(
    database: Database,
) -> None:
    ids = [await _account(database, name, is_admin=True) for name in ("ada", "bob")]

    async def demote(principal_id: int) -> bool:
        async with database.unit_of_work() as uow:
            try:
                await uow.principals.set_admin(principal_id, False)
            except LastAdministrator:
                return False
            await uow.commit()
        return True

    assert sorted(await asyncio.gather(*map(demote, ids))) == [False, True]


async def test_last_administrator_is_neither_disabled_nor_demoted(database: Database) -> None:
    ada = await _account(database, "ada", is_admin=True)
    bob = await _account(database, "bob", is_admin=True)
    async with database.unit_of_work() as uow:
        await uow.principals.disable(bob, NOW)
        with pytest.raises(LastAdministrator):
            await uow.principals.set_admin(ada, False)
    async with database.unit_of_work() as uow:
        await uow.principals.disable(bob, NOW)
        with pytest.raises(LastAdministrator):
            await uow.principals.disable(ada, NOW)


async def test_rights_are_those_of_now(database: Database) -> None:
    ada = await _account(database, "ada")
    async with database.unit_of_work() as uow:
        project = (await uow.projects.ensure("p", NOW)).id
        scope = Scope(frozenset({Permission.PROJECT_READ}), frozenset({project}))
        one = await uow.tokens.add(ada, "t", "a" * 64, scope, NOW, NOW + HOUR)
        await uow.tokens.add(ada, "u", "b" * 64, EVERYTHING, NOW, None)
        await uow.sessions.add(ada, "c" * 64, NOW, NOW + HOUR, address="", agent="")
        found = await uow.rights.of_token("a" * 64, NOW)
        assert found is not None
        assert found.principal.scope == scope
        assert await uow.rights.of_token("a" * 64, NOW + HOUR) is None
        assert await uow.rights.of_token("b" * 64, NOW + 9_999 * HOUR) is not None
        assert await uow.rights.of_session("c" * 64, NOW, NOW - HOUR) is not None
        assert await uow.rights.of_session("c" * 64, NOW, NOW) is None  # not used since
        assert await uow.rights.of_session("c" * 64, NOW + HOUR, NOW - HOUR) is None
        await uow.tokens.revoke(ada, one.id, NOW)
        assert await uow.rights.of_token("a" * 64, NOW) is None
        await uow.principals.disable(ada, NOW)
        assert await uow.rights.of_token("b" * 64, NOW) is None
        assert await uow.rights.of_session("c" * 64, NOW, NOW - HOUR) is None


async def test_credentials_of_others_are_not_found(database: Database) -> None:
    ada, bob = await _account(database, "ada"), await _account(database, "bob")
    async with database.unit_of_work() as uow:
        one = await uow.tokens.add(ada, "t", "a" * 64, EVERYTHING, NOW, None)
        await uow.sessions.add(ada, "c" * 64, NOW, NOW + HOUR, address="", agent="")
        [session] = await uow.sessions.list(ada, NOW)
        with pytest.raises(NotFound):
            await uow.tokens.revoke(bob, one.id, NOW)
        with pytest.raises(NotFound):
            await uow.sessions.end(bob, session.id)
        await uow.tokens.revoke_all(bob, NOW)
        await uow.sessions.end_all(bob)
        assert len(await uow.tokens.list(ada)) == len(await uow.sessions.list(ada, NOW)) == 1


async def test_every_change_of_rights_is_a_new_version(database: Database) -> None:
    ada = await _account(database, "ada")
    async with database.unit_of_work() as uow:
        project = (await uow.projects.ensure("p", NOW)).id
        one = await uow.tokens.add(ada, "t", "a" * 64, EVERYTHING, NOW, None)
        await uow.sessions.add(ada, "c" * 64, NOW, NOW + HOUR, address="", agent="")
        [session] = await uow.sessions.list(ada, NOW)
        await uow.groups.add("crew", "", NOW)
        await uow.commit()
    async with database.unit_of_work() as uow:
        changes = (
            lambda: uow.tokens.revoke(ada, one.id, NOW),
            lambda: uow.tokens.revoke_all(ada, NOW),
            lambda: uow.sessions.end(ada, session.id),
            lambda: uow.sessions.end_all(ada),
            lambda: uow.principals.set_password(ada, "h", must_change=False),
            lambda: uow.principals.disable(ada, NOW),
            lambda: uow.principals.enable(ada),
            lambda: uow.principals.set_admin(ada, True),
            lambda: uow.members.put(project, HolderKind.USER, "ada", Role.READER),
            lambda: uow.members.remove(project, HolderKind.USER, "ada"),
            lambda: uow.groups.add_member("crew", ada),
            lambda: uow.groups.remove_member("crew", ada),
            lambda: uow.groups.delete("crew"),
        )
        for change in changes:
            before = await uow.rights.version()
            await change()
            assert await uow.rights.version() > before


async def test_roles_of_groups_and_of_oneself_the_stronger_counts(database: Database) -> None:
    ada = await _account(database, "ada")
    async with database.unit_of_work() as uow:
        project = (await uow.projects.ensure("p", NOW)).id
        await uow.tokens.add(ada, "t", "a" * 64, EVERYTHING, NOW, None)
        await uow.groups.add("crew", "", NOW)
        await uow.groups.add_member("crew", ada)
        for own, of_group, expected in (
            (Role.READER, Role.OWNER, Role.OWNER),
            (Role.WRITER, Role.READER, Role.WRITER),
        ):
            await uow.members.put(project, HolderKind.USER, "ada", own)
            await uow.members.put(project, HolderKind.GROUP, "crew", of_group)
            found = await uow.rights.of_token("a" * 64, NOW)
            assert found is not None
            assert found.principal.roles == {project: expected}


async def test_things_have_the_project_that_they_belong_to(database: Database) -> None:
    [command] = await accepted(database, start(await published(database)))
    async with database.unit_of_work() as uow:
        home = (await uow.projects.get("demo")).id
        assert await uow.homes.of(Thing.PROJECT, "demo") == home
        assert await uow.homes.of(Thing.COMMAND, command.id) == home
        for thing in Thing:
            key = "nowhere" if thing is Thing.PROJECT else 899_999_999
            assert await uow.homes.of(thing, key) is None
