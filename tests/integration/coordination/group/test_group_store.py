"""The group's znode is written by a member that has read its last state, and by no other; a group
without members can be deleted."""

import asyncio
from dataclasses import replace

import pytest

from shoal.coordination import Group, ZkSession, delete_group, read_group, znodes
from shoal.coordination.errors import BadVersion, GroupNotEmpty
from shoal.coordination.group.model import GroupMetadata
from shoal.coordination.group.store import GroupStore, group_store
from tests.integration.coordination.group.group_bench import QUICK
from tests.integration.coordination.group.traffic import Traffic


async def test_of_two_who_have_read_the_same_only_one_can_write(session: ZkSession) -> None:
    one, two = (GroupStore(session, "g", 3.0) for _ in range(2))
    await one.register("one", {})
    await two.register("two", {})
    seen_by_one, seen_by_two = await one.read(), await two.read()
    assert seen_by_one == seen_by_two

    await one.write(GroupMetadata("g", 3.0, generation=7), seen_by_one.version)
    with pytest.raises(BadVersion):
        await two.write(GroupMetadata("g", 3.0, generation=8), seen_by_two.version)

    now = await two.read()
    assert now.metadata.generation == 7
    await two.write(GroupMetadata("g", 3.0, generation=8), now.version)
    assert (await one.read()).metadata.generation == 8


async def test_changes_on_one_view_are_one_write_and_later_ones_are_refused(
    session: ZkSession,
) -> None:
    store = group_store(session, "g", 3.0)
    assert group_store(session, "g", 3.0) is store
    await store.register("one", {})
    view, same = await asyncio.gather(store.current(60.0), store.current(60.0))
    assert view is same

    def one_more(group: GroupMetadata, _: bool) -> GroupMetadata:
        return replace(group, pending=group.pending | {f"member-{len(group.pending)}"})

    def nothing(group: GroupMetadata, _: bool) -> GroupMetadata:
        return group

    def fail(*_: object) -> GroupMetadata:
        raise ZeroDivisionError

    changes = [store.change(view, each) for each in (one_more, fail, nothing, one_more)]
    first, failed, unchanged, second = await asyncio.gather(*changes, return_exceptions=True)
    assert (first, unchanged, second) == (True, False, True)
    assert isinstance(failed, ZeroDivisionError)
    after = await store.current(60.0)
    assert after.metadata.pending == {"member-0", "member-1"}
    assert after.version == view.version + 1

    with pytest.raises(BadVersion):
        await store.change(view, one_more)
    assert (await store.read()).version == after.version


async def test_a_reading_that_takes_longer_than_a_view_may_serve_is_answered(
    session: ZkSession,
) -> None:
    store = group_store(session, "g", 3.0)
    await store.register("one", {})
    traffic = Traffic(session)
    async with asyncio.timeout(60.0):
        await store.current(0.0)
    assert traffic.requests["GetData"] == 1


async def test_a_change_of_what_this_session_has_replaced_is_refused_without_a_request(
    session: ZkSession,
) -> None:
    store = group_store(session, "g", 3.0)
    await store.register("one", {})
    view = await store.current(60.0)

    def one_more(group: GroupMetadata, _: bool) -> GroupMetadata:
        return replace(group, pending=group.pending | {"member"})

    traffic = Traffic(session)
    assert await store.change(view, one_more)
    with pytest.raises(BadVersion):
        await store.change(view, one_more)
    assert traffic.requests["SetData"] == 1


async def test_members_that_cannot_be_written_hear_why(session: ZkSession) -> None:
    """The group was changed by another process, of which this one has not heard yet."""
    store, other = group_store(session, "g", 3.0), GroupStore(session, "g", 3.0)
    await store.register("one", {})
    view = await store.current(60.0)
    await other.write(replace(view.metadata, generation=7), view.version)

    def one_more(group: GroupMetadata, _: bool) -> GroupMetadata:
        return replace(group, pending=group.pending | {"member"})

    both = [store.change(view, one_more), store.change(view, one_more)]
    found = await asyncio.gather(*both, return_exceptions=True)
    assert [type(each) for each in found] == [BadVersion, BadVersion]
    now = await store.current(60.0)
    assert (now.metadata.generation, now.metadata.pending) == (7, frozenset())


async def test_a_group_is_deleted_once_its_members_have_left(session: ZkSession) -> None:
    async with Group(session, "a/b", topics={"t": 2}, settings=QUICK) as group:
        with pytest.raises(GroupNotEmpty, match=group.member_id) as refused:
            await delete_group(session, "a/b")
        assert refused.value.members == [group.member_id]
        assert group.member_id in (await read_group(session, "a/b")).members
    assert (await session.children(znodes.GROUPS)).names
    await delete_group(session, "a/b")
    assert (await session.children(znodes.GROUPS)).names == []
    await delete_group(session, "a/b")  # it is no more: that is what we want
    async with Group(session, "a/b", topics={"t": 2}, settings=QUICK) as group:
        assert group.member_id in (await read_group(session, "a/b")).members


async def test_a_group_whose_last_member_died_or_never_came_can_be_deleted(
    session: ZkSession,
) -> None:
    store = GroupStore(session, "g", 3.0)
    await store.register("one", {})
    view = await store.read()
    await store.write(GroupMetadata("g", 3.0, pending=frozenset(["one"])), view.version)
    await store.deregister("one")
    await delete_group(session, "g")
    await session.create(znodes.group("half"))  # who was to join has died at the first step
    await delete_group(session, "half")
    assert (await session.children(znodes.GROUPS)).names == []


async def test_registration_that_lasts_goes_each_time_that_it_comes(session: ZkSession) -> None:
    """Of one name, too: what was removed is not taken for known."""
    store = GroupStore(session, "g", 3.0)
    await store.register("member", {})
    path = f"{znodes.group_members('g')}/junk"
    for _ in range(3):
        await session.create(path)
        await store.remove_lasting(await store.read())
        assert await session.exists(path) is None
    assert (await store.read()).names == {"member"}
