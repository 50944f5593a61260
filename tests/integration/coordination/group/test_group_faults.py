"""Members are slow, stuck, cut off, expired and doubled; the group goes on and shares nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import (
    Group,
    GroupListener,
    GroupMetadata,
    Partition,
    SessionState,
    ZkSession,
    read_group,
)
from shoal.coordination.errors import FencedInstanceId
from shoal.coordination.group import GroupState
from tests.integration.coordination.conftest import delete_request, eventually, set_request
from tests.integration.coordination.group.group_bench import PATIENCE_S, QUICK, Bench, Peer, jobs
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S
from tests.support.zookeeper.server import expire_session

ALL = jobs(*range(6))
CUT_S = 6.0  # session timeout of those who are to lose their session by silence
LENIENT = replace(QUICK, static_grace_s=36_000.0)
IMPATIENT = replace(QUICK, rebalance_timeout_s=5.0)


@pytest.fixture
async def bench(zk_chroot: str, zk_proxy: TcpProxy) -> AsyncIterator[Bench]:
    """All members leave before the proxy does."""
    bench = Bench(zk_chroot)
    try:
        yield bench
    finally:
        await bench.close()
    bench.ledger.check()


async def for_ever(_: frozenset[Partition]) -> None:
    await asyncio.Event().wait()


async def raise_something(_: frozenset[Partition]) -> None:
    raise RuntimeError("the listener has a bug")


def lost(bench: Bench, peer: Peer) -> list[frozenset[Partition]]:
    """What ``peer`` was told to have lost, call by call."""
    return [what for call, what in bench.ledger.of(peer.recorder.name) if call == "lost"]


# ------------------------------------------------------------------ slow and faulty listeners


@pytest.mark.parametrize("stuck_in", ["working", "finishing"])
async def test_a_member_that_is_stuck_loses_everything_and_joins_anew(
    bench: Bench, stuck_in: str
) -> None:
    slow = await bench.join("slow", settings=IMPATIENT)
    await bench.shared_out(slow)
    was = slow.group.member_id
    setattr(slow.recorder, stuck_in, for_ever)
    other = await bench.join("other", settings=IMPATIENT)
    if stuck_in == "working":
        await bench.shared_out(slow, other)
        await other.leave()  # so "slow" is given more, and hangs
    await eventually(lambda: lost(bench, slow), PATIENCE_S)
    assert lost(bench, slow) == [ALL]
    setattr(slow.recorder, stuck_in, None)
    await bench.shared_out(*([slow] if stuck_in == "working" else [slow, other]))
    assert slow.group.member_id != was


async def test_a_stuck_member_is_out_before_others_have_what_it_held(bench: Bench) -> None:
    """It is given partitions, hangs, and the group wants to rebalance meanwhile."""
    slow = bench.prepare("slow", settings=IMPATIENT)
    slow.recorder.working = for_ever
    await bench.enter(slow)
    await eventually(lambda: slow.owned == ALL, PATIENCE_S)
    other = await bench.join("other", settings=IMPATIENT)
    await eventually(lambda: lost(bench, slow), PATIENCE_S)
    slow.recorder.working = None
    await bench.shared_out(slow, other)


async def test_a_failing_listener_wedges_nothing(bench: Bench) -> None:
    faulty = bench.prepare("faulty")
    faulty.recorder.working = faulty.recorder.finishing = raise_something
    await bench.enter(faulty)
    await bench.shared_out(faulty)
    other = bench.prepare("other")
    await bench.enter(other)
    await eventually(lambda: len(other.owned) == len(faulty.owned) == 3, PATIENCE_S)
    # It could not finish, so by our count it still holds what the group has given to the other.
    assert len(bench.ledger.shared) == 3
    faulty.recorder.working = faulty.recorder.finishing = None
    bench.ledger.shared.clear()


async def test_who_does_not_poll_loses_everything_until_the_next_poll(bench: Bench) -> None:
    idle = await bench.join("idle", settings=replace(QUICK, max_poll_interval_s=1.0))
    other = await bench.join("other")
    await bench.shared_out(other)
    assert idle.owned == frozenset()
    assert len(lost(bench, idle)) <= 1

    def poll_and_look() -> bool:
        idle.group.poll()
        return len(idle.owned) == len(other.owned) == 3

    await eventually(poll_and_look, PATIENCE_S)


# ------------------------------------------------------------------ lost sessions


async def test_an_expired_session_loses_all_and_begins_anew(
    bench: Bench, zookeeper: ZooKeeperServer
) -> None:
    peer = await bench.join("a")
    await bench.shared_out(peer)
    was = peer.group.member_id
    await expire_session(peer.session, zookeeper)
    await eventually(lambda: len(bench.ledger.of("a")) == 3, PATIENCE_S)
    assert bench.ledger.of("a") == [("assigned", ALL), ("lost", ALL), ("assigned", ALL)]
    await bench.shared_out(peer)
    assert peer.group.member_id != was


@pytest.mark.parametrize("stuck_in", ["working", "finishing"])
async def test_a_cut_off_member_hears_of_its_loss_even_in_a_callback(
    bench: Bench, zk_proxied: str, zk_proxy: TcpProxy, stuck_in: str
) -> None:
    cut = bench.prepare("cut", address=zk_proxied, timeout_s=CUT_S)
    other = bench.prepare("other")
    setattr(cut.recorder, stuck_in, for_ever)
    await bench.enter(cut)
    await eventually(lambda: cut.recorder.held == ALL, PATIENCE_S)
    await bench.enter(other)
    if stuck_in == "finishing":
        await eventually(lambda: ("cut", "revoking") in bench.ledger.calls(), PATIENCE_S)
    zk_proxy.freeze()
    await eventually(lambda: lost(bench, cut), PATIENCE_S)
    assert lost(bench, cut) == [ALL]
    assert cut.owned == frozenset()
    await bench.shared_out(other)
    setattr(cut.recorder, stuck_in, None)
    zk_proxy.heal()
    await bench.shared_out(cut, other)


async def test_a_session_in_doubt_that_goes_on_is_begun_anew_at_once(
    bench: Bench, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    """Nobody waits for the member that it was before, although its session never ended."""
    settings = replace(QUICK, rebalance_timeout_s=10 * PATIENCE_S)
    cut = await bench.join("cut", settings=settings, address=zk_proxied, timeout_s=CUT_S)
    other = await bench.join("other", settings=settings)
    await bench.shared_out(cut, other)
    was, session_id = cut.group.member_id, cut.session.session_id
    zk_proxy.swallow_replies = True  # the server hears it, so the session goes on
    await eventually(lambda: lost(bench, cut), PATIENCE_S)
    zk_proxy.drop()
    zk_proxy.heal()
    await bench.shared_out(cut, other)
    assert cut.group.member_id != was
    assert cut.session.session_id == session_id


async def test_a_session_in_doubt_that_goes_on_twice_leaves_no_former_member_behind(
    bench: Bench, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    """The life that was to end the registration of the one before is cut short itself."""
    settings = replace(QUICK, rebalance_timeout_s=10 * PATIENCE_S)
    cut = await bench.join("cut", settings=settings, address=zk_proxied, timeout_s=CUT_S)
    other = await bench.join("other", settings=settings)
    await bench.shared_out(cut, other)
    was, session_id = cut.group.member_id, cut.session.session_id
    zk_proxy.swallow_replies = True  # the server hears it, so the session goes on
    await eventually(lambda: lost(bench, cut), PATIENCE_S)
    zk_proxy.freeze_from = delete_request(zk_proxied, f"/groups/g/members/{was}")
    zk_proxy.drop()
    zk_proxy.heal()
    await eventually(lambda: zk_proxy.freeze_from is None, PATIENCE_S)
    zk_proxy.drop()  # the deletion never arrives
    zk_proxy.heal()
    zk_proxy.swallow_replies = True
    await eventually(lambda: not cut.session.is_proven, PATIENCE_S)
    assert was in (await read_registered(other))
    second = cut.group.member_id
    zk_proxy.drop()
    zk_proxy.heal()
    await bench.shared_out(cut, other)
    assert cut.session.session_id == session_id
    assert len({was, second, cut.group.member_id}) == 3
    assert await read_registered(other) == {cut.group.member_id, other.group.member_id}


async def read_registered(peer: Peer) -> set[str]:
    return set((await peer.session.children("/groups/g/members")).names)


async def test_a_lost_connection_alone_changes_nothing(
    bench: Bench, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    a, b = await bench.join("a", address=zk_proxied), await bench.join("b")
    await bench.shared_out(a, b)
    told, generation = list(bench.ledger.told), a.group.generation
    states: list[SessionState] = []
    a.session.on_state(states.append)
    for _ in range(3):
        states.clear()
        zk_proxy.drop()
        await eventually(lambda: SessionState.CONNECTED in states, PATIENCE_S)
        await a.session.retry(lambda: a.session.sync("/"))
    assert bench.ledger.told == told
    assert b.group.metadata.generation == a.group.generation == generation


async def test_leaving_takes_no_longer_than_the_session_when_nobody_answers(
    bench: Bench, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    cut = await bench.join("cut", address=zk_proxied, timeout_s=CUT_S)
    await bench.shared_out(cut)
    zk_proxy.freeze()
    async with asyncio.timeout(PATIENCE_S):
        await cut.leave()
    assert bench.ledger.of("cut")[0] == ("assigned", ALL)
    assert bench.ledger.of("cut")[-1][0] in ("revoked", "lost")
    assert cut.recorder.held == set()


async def test_lost_answers_do_no_harm(bench: Bench, zk_proxied: str, zk_proxy: TcpProxy) -> None:
    """Every write of the newcomer's is done, and its answer lost."""
    old = await bench.join("old")
    await bench.shared_out(old)
    write = set_request(zk_proxied, "/groups/g")
    zk_proxy.swallow_from = write
    new = bench.prepare("new", address=zk_proxied)
    joining = asyncio.create_task(bench.enter(new))
    swallowed = 0
    try:
        while not (joining.done() and len(new.owned) == 3):
            if zk_proxy.swallow_from is None and swallowed < 4:
                swallowed += 1
                zk_proxy.heal()
                zk_proxy.drop()
                zk_proxy.swallow_from = write if swallowed < 4 else None
            await asyncio.sleep(0.005)
    finally:
        zk_proxy.swallow_from = None
        zk_proxy.heal()
        zk_proxy.drop()
        await joining
    assert swallowed >= 3
    await bench.shared_out(old, new)
    assert bench.ledger.calls().count(("new", "assigned")) == 1


# ------------------------------------------------------------------ leaders


@pytest.mark.parametrize(
    "state", [GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.STABLE]
)
async def test_a_leader_that_dies_in_any_step_is_succeeded(
    bench: Bench, zk_proxied: str, zk_proxy: TcpProxy, state: GroupState
) -> None:
    leader = await bench.join("leader", address=zk_proxied, timeout_s=CUT_S)
    second = await bench.join("second")
    await bench.shared_out(leader, second)
    assert leader.group.is_leader
    since = leader.group.generation
    fell_silent: list[GroupState] = []

    def fall_silent(group: GroupMetadata) -> None:
        if group.state is state and group.generation >= since and not fell_silent:
            zk_proxy.freeze()  # before it can answer this view
            fell_silent.append(group.state)

    leader.group.on_change(fall_silent)
    third = await bench.join("third")
    await bench.shared_out(second, third)
    assert fell_silent == [state]
    assert second.group.is_leader
    zk_proxy.heal()
    await bench.shared_out(leader, second, third)


# ------------------------------------------------------------------ static members


async def test_a_static_member_that_restarts_in_time_is_not_noticed(bench: Bench) -> None:
    other = await bench.join("other", instance_id="i-other")
    first = await bench.join("first", instance_id="i")
    await bench.shared_out(other, first)
    had, generation, told = first.owned, other.group.generation, bench.ledger.of("other")
    await first.leave()
    again = await bench.join("again", instance_id="i")
    await eventually(lambda: again.owned == had, PATIENCE_S)
    assert again.group.metadata.generation == generation
    assert bench.ledger.of("other") == told


async def test_a_static_member_whose_session_expires_is_not_noticed(
    bench: Bench, zookeeper: ZooKeeperServer
) -> None:
    other, peer = await bench.join("other"), await bench.join("static", instance_id="i")
    await bench.shared_out(other, peer)
    had, generation = peer.owned, other.group.generation
    await expire_session(peer.session, zookeeper)
    await eventually(lambda: len(bench.ledger.of("static")) == 3, PATIENCE_S)
    assert bench.ledger.of("static") == [("assigned", had), ("lost", had), ("assigned", had)]
    assert other.group.metadata.generation == generation


async def test_a_static_member_that_stays_away_is_evicted(bench: Bench) -> None:
    settings = replace(QUICK, static_grace_s=5.0)
    other = await bench.join("other", settings=settings)
    gone = await bench.join("gone", settings=settings, instance_id="i")
    await bench.shared_out(other, gone)
    await gone.leave()
    assert len(other.group.metadata.members) == 2
    await bench.shared_out(other)


async def test_a_second_process_with_one_instance_id_fences_the_first(
    bench: Bench, session: ZkSession
) -> None:
    older = await bench.join("older", instance_id="i")
    await bench.shared_out(older)
    # The younger one is told at once, the older one when it looks; who must be sure has an epoch.
    bench.ledger.holders.clear()
    younger = await bench.join("younger", instance_id="i")
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(FencedInstanceId, match="'i'"):
            await older.group.wait()
    with pytest.raises(FencedInstanceId):
        older.group.poll()
    assert lost(bench, older) == [ALL]
    await bench.shared_out(younger)
    assert (await read_group(session, "g")).generation == 1


async def test_a_replaced_static_member_that_comes_back_is_fenced_and_its_replacement_lives(
    bench: Bench, session: ZkSession, zk_proxied: str, zk_proxy: TcpProxy
) -> None:
    zombie = await bench.join(
        "zombie", settings=LENIENT, instance_id="i", address=zk_proxied, timeout_s=CUT_S
    )
    other = await bench.join("other", settings=LENIENT)
    await bench.shared_out(zombie, other)
    await eventually(partial(_all_have_synced, other, zombie), PATIENCE_S)
    had, generation = zombie.owned, other.group.generation
    zk_proxy.freeze()
    await eventually(lambda: lost(bench, zombie), PATIENCE_S)
    replacement = await bench.join("replacement", settings=LENIENT, instance_id="i")
    await eventually(lambda: replacement.owned == had, PATIENCE_S)
    await eventually(partial(_all_have_synced, other, replacement), PATIENCE_S)
    before = await session.get("/groups/g")
    zk_proxy.heal()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(FencedInstanceId, match="'i'"):
            await zombie.group.wait()
    with pytest.raises(FencedInstanceId):
        zombie.group.poll()
    replacement.group.poll()
    assert (replacement.owned, zombie.owned) == (had, frozenset())
    # It has written nothing, and no registration of it is left.
    assert (await session.get("/groups/g")).stat.version == before.stat.version
    assert before.stat.version > 0
    assert await read_registered(other) == {replacement.group.member_id, other.group.member_id}
    assert other.group.generation == generation


@pytest.mark.parametrize("stuck_in", ["working", "finishing"])
async def test_a_static_member_that_is_replaced_while_it_is_called_back_is_fenced(
    bench: Bench, stuck_in: str
) -> None:
    older = bench.prepare("older", instance_id="i")
    setattr(older.recorder, stuck_in, for_ever)
    await bench.enter(older)
    await eventually(lambda: older.recorder.held == ALL, PATIENCE_S)
    if stuck_in == "finishing":
        await bench.join("other")
        await eventually(lambda: ("older", "revoking") in bench.ledger.calls(), PATIENCE_S)
    bench.ledger.holders.clear()  # the younger one may hear of it first
    younger = await bench.join("younger", instance_id="i")
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(FencedInstanceId, match="'i'"):
            await older.group.wait()
    assert lost(bench, older) == [ALL]
    await eventually(lambda: younger.owned, PATIENCE_S)
    younger.group.poll()


@pytest.mark.parametrize("times", [1, 3])
async def test_a_static_member_that_is_lost_again_and_again_keeps_its_place(
    bench: Bench, session: ZkSession, times: int
) -> None:
    """Each life is a member of another id, and the group has only the last one."""
    peer = await bench.join("a", settings=LENIENT, instance_id="i")
    other = await bench.join("b", settings=LENIENT)
    await bench.shared_out(peer, other)
    had, generation = peer.owned, other.group.generation
    for _ in range(times):
        was = peer.group.member_id
        await session.delete(f"/groups/g/members/{was}")
        await eventually(partial(_owns_again, peer, was, had), PATIENCE_S)
    assert other.group.metadata.generation == generation


async def test_of_members_that_enter_with_one_instance_id_at_once_one_lives(
    session: ZkSession,
) -> None:
    settings = replace(QUICK, instance_id="i")
    groups = [Group(session, "g", topics={"jobs": 2}, settings=settings) for _ in range(5)]
    async with AsyncExitStack() as stack:
        entering = [stack.enter_async_context(group) for group in groups]
        results = await asyncio.gather(*entering, return_exceptions=True)
        assert all(isinstance(each, (Group, FencedInstanceId)) for each in results)

        def living() -> list[Group]:
            return [
                group
                for group, failed in zip(groups, map(_failure, groups), strict=True)
                if failed is None
            ]

        await eventually(lambda: len(living()) == 1, PATIENCE_S)
        [last] = living()
        await eventually(lambda: last.owned == jobs(0, 1), PATIENCE_S)
        assert all(
            isinstance(failed, FencedInstanceId) for failed in map(_failure, groups) if failed
        )


def _failure(group: Group) -> Exception | None:
    try:
        group.raise_failure()
    except Exception as error:  # noqa: BLE001 - the test looks at what it is
        return error
    return None


def _all_have_synced(observer: Peer, peer: Peer) -> bool:
    members = observer.group.metadata.members
    return peer.group.member_id in members and all(m.has_synced for m in members.values())


def _owns_again(peer: Peer, was: str, had: frozenset[Partition]) -> bool:
    return peer.group.member_id != was and peer.owned == had


async def test_a_static_member_without_grace_is_evicted_at_once(bench: Bench) -> None:
    settings = replace(QUICK, static_grace_s=0.0)
    other = await bench.join("other", settings=settings)
    gone = await bench.join("gone", settings=settings, instance_id="i")
    await bench.shared_out(other, gone)
    await gone.leave()
    await bench.shared_out(other)
    again = await bench.join("again", settings=settings, instance_id="i")
    await bench.shared_out(other, again)


async def test_a_member_whose_registration_was_deleted_joins_anew(
    bench: Bench, session: ZkSession
) -> None:
    peer, other = await bench.join("a"), await bench.join("b")
    await bench.shared_out(peer, other)
    was = peer.group.member_id
    await session.delete(f"/groups/g/members/{was}")
    await eventually(lambda: peer.group.member_id != was, PATIENCE_S)
    await bench.shared_out(peer, other)
    bench.ledger.shared.clear()  # an administrator's doing: the other may hear of it first


async def test_on_lost_runs_although_leaving_is_cancelled_while_the_membership_ends(
    session: ZkSession, zookeeper: ZooKeeperServer
) -> None:
    begun, ending = asyncio.Event(), asyncio.Event()
    told: list[frozenset[Partition]] = []

    class Slow(GroupListener):
        async def on_assigned(self, partitions: frozenset[Partition]) -> None:
            begun.set()
            try:
                await for_ever(partitions)
            finally:
                ending.set()
                await for_ever(partitions)

        async def on_lost(self, partitions: frozenset[Partition]) -> None:
            told.append(partitions)

    group = Group(session, "g", topics={"jobs": 6}, listener=Slow(), settings=QUICK)
    await group.__aenter__()
    await begun.wait()
    await expire_session(session, zookeeper)
    await ending.wait()
    leaving = asyncio.create_task(group.__aexit__())
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving], timeout=DEADLINE_S)
    assert leaving.cancelled()
    assert told == [ALL]
