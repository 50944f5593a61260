"""Nodes that stand for a process are deleted from outside: the process finds out, stops
acting on them, and makes them again."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from shoal.coordination import (
    Create,
    Delete,
    Group,
    Membership,
    TaskQueue,
    ZkSession,
    read_group,
    znodes,
)
from shoal.coordination.cluster import layout
from shoal.coordination.recipes import ownership
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.given import entry, owner
from tests.integration.coordination.group.group_bench import QUICK
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually


def is_another(group: Group, member_id: str) -> bool:
    return group.member_id != member_id


async def delete(session: ZkSession, paths: Sequence[str]) -> None:
    await asyncio.gather(*(session.delete(path) for path in paths))


async def test_owner_whose_nodes_are_deleted_loses_those_and_takes_them_again(
    tree: ZkSession, zk_chroot: str
) -> None:
    async with connect(zk_chroot) as other, owner(tree, "m1", range(4)) as recorder:
        await eventually(lambda: len(recorder.all("acquired")) == 4)
        before = dict(recorder.ownership.owned())
        await delete(other, [layout.owner(1), layout.owner(2)])
        await eventually(lambda: len(recorder.all("acquired")) == 6)
        after = recorder.ownership.owned()
        # What was not touched went on, what was lost is told before it is ours again.
        assert {p for lost in recorder.all("lost") for p in lost} == {1, 2}
        assert (after[0], after[3]) == (before[0], before[3])
        assert after[1] > before[1]
        assert after[2] > before[2]
        last = [value for kind, value, _ in recorder.told if kind in ("lost", "acquired")][4:]
        assert isinstance(last[0], frozenset)
    assert sorted(recorder.all("released")) == [0, 1, 2, 3]


async def test_owner_that_was_cut_off_for_long_still_notices(
    tree: ZkSession, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    """What it owned was lost while it waited to look: that must not end the looks."""
    async with (
        connect(zk_proxied, session_timeout_s=2.0, close_timeout_s=1.0) as cut_off,
        owner(cut_off, "m1", range(4), reread_s=0.2) as recorder,
    ):
        await eventually(lambda: len(recorder.all("acquired")) == 4)
        zk_proxy.cut()
        await eventually(lambda: recorder.all("lost"))
        zk_proxy.heal()
        await eventually(lambda: len(recorder.all("acquired")) == 8)
        await delete(tree, [layout.owner(number) for number in range(4)])
        await eventually(lambda: len(recorder.all("acquired")) == 12)


async def test_owner_notices_although_no_watch_fires(
    tree: ZkSession, zk_chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch is a hint: the nodes are read anew all the same."""
    monkeypatch.setattr(ownership.Ownership, "_node_changed", lambda _, __: None)
    async with connect(zk_chroot) as other, owner(tree, "m1", [0], reread_s=0.2) as recorder:
        await eventually(lambda: recorder.all("acquired"))
        await delete(other, [layout.owner(0)])
        await eventually(lambda: len(recorder.all("acquired")) == 2)
        assert recorder.all("lost") == [frozenset({0})]


async def test_owner_whose_node_is_replaced_by_another_session_stops(
    tree: ZkSession, zk_chroot: str
) -> None:
    async with connect(zk_chroot) as other, owner(tree, "m1", [0]) as recorder:
        await eventually(lambda: recorder.all("acquired"))
        await other.multi([layout_delete(0), layout_create(0)])
        await eventually(lambda: recorder.all("lost"))
        assert not recorder.ownership.owned()
        await other.delete(layout.owner(0))
        await eventually(lambda: len(recorder.all("acquired")) == 2)


async def test_lasting_node_at_an_owners_place_is_nobodys(tree: ZkSession) -> None:
    await tree.create(layout.owner(0), b'{"owner_id": "a ghost"}')
    await tree.create(f"{layout.owner(0)}/below")
    async with owner(tree, "m1", [0]) as recorder:
        await eventually(lambda: recorder.all("acquired"))


async def test_loss_of_one_partition_is_told_while_another_is_lost_with_the_session(
    tree: ZkSession, zk_chroot: str
) -> None:
    """Each loss is told once, whichever comes first."""
    async with connect(zk_chroot) as other, owner(tree, "m1", range(4)) as recorder:
        await eventually(lambda: len(recorder.all("acquired")) == 4)

        def lost(count: int) -> bool:
            return sum(len(partitions) for partitions in recorder.all("lost")) == count

        for count in range(1, 6):
            await delete(other, [layout.owner(number) for number in range(4)])
            tree.drop_connection()
            # The loss of some may be told before that of others.
            await eventually(partial(lost, 4 * count))
            await eventually(lambda: len(recorder.ownership.owned()) == 4)
        assert len(recorder.all("acquired")) == 4 + 4 * 5


async def test_member_registers_again(tree: ZkSession, zk_chroot: str) -> None:
    async with connect(zk_chroot) as other, Membership(tree, "/masters", "m", {"x": 1}) as member:
        epoch = member.epoch
        await other.delete("/masters/m")
        await eventually(lambda: member.epoch > epoch)
        await other.set("/masters/m", b"\xff\x00")
        async with asyncio.timeout(DEADLINE_S):
            while b'"x": 1' not in (await other.get("/masters/m")).data:
                await asyncio.sleep(0.01)


async def test_lasting_node_does_not_keep_a_member_waiting(tree: ZkSession) -> None:
    await tree.create("/masters/m", b'{"incarnation": "a ghost"}')
    async with asyncio.timeout(DEADLINE_S), Membership(tree, "/masters", "m", {}):
        assert (await tree.get("/masters/m")).stat.session_id == tree.session_id


async def test_member_of_a_group_whose_registration_is_deleted_joins_anew(
    session: ZkSession, zk_chroot: str
) -> None:
    async with (
        connect(zk_chroot) as other,
        Group(session, "g", topics={"t": 4}, settings=replace(QUICK, client_id="a")) as a,
        Group(other, "g", topics={"t": 4}, settings=replace(QUICK, client_id="b")) as b,
    ):
        await eventually(lambda: len(a.owned) == len(b.owned) == 2)
        for _ in range(3):
            before = a.member_id
            await delete(other, [znodes.member(znodes.group_members("g"), before)])
            await eventually(partial(is_another, a, before))
            await eventually(lambda: len(a.owned) == len(b.owned) == 2)
        assert set((await read_group(session, "g")).members) == {a.member_id, b.member_id}


async def test_a_group_that_is_deleted_under_its_only_member_begins_anew(
    session: ZkSession, zk_chroot: str
) -> None:
    async with (
        connect(zk_chroot) as other,
        Group(session, "g", topics={"t": 4}, settings=QUICK) as group,
    ):
        await eventually(lambda: len(group.owned) == 4)
        before = group.member_id
        await other.delete(znodes.member(znodes.group_members("g"), before))
        await eventually(lambda: group.member_id != before and len(group.owned) == 4)
        before = group.member_id
        members = znodes.group_members("g")
        await other.delete(znodes.member(members, before))
        await eventually(lambda: group.member_id != before and len(group.owned) == 4)


async def test_claimer_registers_again(tree: ZkSession, zk_chroot: str) -> None:
    queue = TaskQueue(tree)
    await queue.put([entry(1)])
    assert await queue.claim("default", 1, "w")
    claimers = layout.claimers("default")
    async with connect(zk_chroot) as other:
        (name,) = (await other.children(claimers)).names
        await other.delete(f"{claimers}/{name}")
        await other.delete(claimers)
        for task in range(2, 100):
            await queue.put([entry(task)])
            assert await queue.claim("default", 1, "w")
            if await other.exists(f"{claimers}/{name}"):
                return
            await asyncio.sleep(0.2)
    raise AssertionError("the claimer did not register again")


def layout_delete(partition: int) -> Delete:
    return Delete(layout.owner(partition))


def layout_create(partition: int) -> Create:
    return Create(layout.owner(partition), b"{}", ephemeral=True)
