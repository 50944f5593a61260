"""Principals, groups, roles, sessions and tokens in both databases."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import Permission, Role
from shoal.core.access.principals import EVERYTHING, PrincipalKind, TokenScope
from shoal.core.access.records import HolderKind, NewAccount
from shoal.sql import Database
from shoal.sql.errors import AccountExists, IdentityTaken, LastAdministrator, NotFound
from shoal.sql.repositories.access.sign_ins import SignInCode
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
        scope = TokenScope(frozenset({Permission.PROJECT_READ}), frozenset({project}))
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
        for thing in frozenset(Thing) - {Thing.PAST_RUN}:  # of these the history knows
            key = "nowhere" if thing is Thing.PROJECT else 899_999_999
            assert await uow.homes.of(thing, key) is None


async def test_identity_is_of_one_account_and_an_account_has_one(database: Database) -> None:
    ada, bob = [await _account(database, name) for name in ("ada", "bob")]
    async with database.unit_of_work() as uow:
        assert await uow.principals.of_identity("i", "1") is None
        await uow.principals.link(ada, "i", "1")
        await uow.principals.link(ada, "i", "1")  # again
        found = await uow.principals.of_identity("i", "1")
        assert found is not None
        assert (found.id, found.issuer, found.subject) == (ada, "i", "1")
        for other in ("I", "1 ", "i"):
            assert await uow.principals.of_identity(other, "1" if other == "I" else "2") is None
        with pytest.raises(IdentityTaken, match="is ada already"):
            await uow.principals.link(bob, "i", "1")
        with pytest.raises(IdentityTaken, match="unlink that first"):
            await uow.principals.link(ada, "i", "2")
        await uow.principals.unlink(ada)
        await uow.principals.link(bob, "i", "1")
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.principals.of_identity("i", "1")
    assert found is not None
    assert found.id == bob


async def test_password_that_was_never_used_goes_with_an_identity(database: Database) -> None:
    async with database.unit_of_work() as uow:
        for name, must_change in (("new", True), ("old", False)):
            new = NewAccount(USER, name, password="hash", must_change_password=must_change)
            made = await uow.principals.add(new, NOW)
            await uow.principals.link(made.id, "i", name)
        new_one, old = await uow.principals.get("new"), await uow.principals.get("old")
        await uow.commit()
    assert (new_one.has_password, new_one.must_change_password) == (False, False)
    assert old.has_password


async def test_groups_of_an_issuer_come_and_go_and_those_by_hand_stay(database: Database) -> None:
    ada = await _account(database, "ada")

    async def members() -> set[str]:
        async with database.unit_of_work(read_only=True) as uow:
            return {one.name for one in await uow.groups.list() if "ada" in one.members}

    async def said(*names: str) -> tuple[frozenset[str], bool]:
        async with database.unit_of_work() as uow:
            before = await uow.rights.version()
            missing = await uow.groups.set_of_issuer(ada, frozenset(names))
            changed = await uow.rights.version() != before
            await uow.commit()
        return missing, changed

    async with database.unit_of_work() as uow:
        for name in ("one", "two", "three"):
            await uow.groups.add(name, "", NOW)
        await uow.groups.add_member("three", ada)
        await uow.commit()
    assert await said("One", "lost", "three") == (frozenset({"lost"}), True)
    assert await members() == {"one", "three"}
    assert await said("one", "three") == (frozenset(), False)
    assert await said("two") == (frozenset(), True)
    assert await members() == {"two", "three"}
    async with database.unit_of_work() as uow:
        assert not await uow.groups.add_member("two", ada)  # by hand from now on
        await uow.commit()
    await said()
    assert await members() == {"two", "three"}
    await said("one")
    async with database.unit_of_work() as uow:
        await uow.principals.unlink(ada)
        await uow.commit()
    assert await members() == {"two", "three"}


async def test_sign_in_ends_once_and_its_code_is_good_once(database: Database) -> None:
    ada = await _account(database, "ada")
    minute = timedelta(minutes=1)

    async def end(digest: str, *, at: Any = NOW, code: SignInCode | None = None) -> bool:
        async with database.unit_of_work() as uow:
            done = await uow.sign_ins.end(digest, ada, at, at + HOUR, code)
            await uow.commit()
        return done

    async def take(challenge: str, at: Any) -> int | None:
        async with database.unit_of_work() as uow:
            found = await uow.sign_ins.take("code", challenge, at)
            await uow.commit()
        return found

    assert await end("x", code=SignInCode("code", "right", NOW + minute))
    assert not await end("x")
    assert await end("y")
    assert await take("wrong", NOW) is None
    assert await take("right", NOW + minute) is None
    assert [await take("right", NOW), await take("right", NOW)] == [ada, None]
    assert not await end("x", at=NOW + HOUR - minute)
    assert await end("x", at=NOW + HOUR)  # forgotten: it had expired long ago


async def test_code_is_taken_by_one_of_several(database: Database) -> None:
    ada = await _account(database, "ada")
    async with database.unit_of_work() as uow:
        await uow.sign_ins.end("x", ada, NOW, NOW + HOUR, SignInCode("code", "c", NOW + HOUR))
        await uow.commit()

    async def take() -> int | None:
        async with database.unit_of_work() as uow:
            found = await uow.sign_ins.take("code", "c", NOW)
            await uow.commit()
        return found

    taken = await asyncio.gather(*(take() for _ in range(4)))
    assert sorted(one for one in taken if one is not None) == [ada]
