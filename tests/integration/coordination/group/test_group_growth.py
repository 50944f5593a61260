"""Requests and bytes of a rebalance grow no faster than members plus partitions."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest

from shoal.coordination import Group, ZkSession
from shoal.coordination.assignors import Assignor, cooperative_sticky, sticky
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.group.group_bench import QUICK
from tests.integration.coordination.group.traffic import Traffic
from tests.support.waiting import eventually

FEW, MANY = 10, 160  # members
SESSIONS = 4  # that they share
PER_MEMBER = 4  # partitions
PATIENT = replace(QUICK, rebalance_timeout_s=600.0, reread_s=600.0)


@dataclass(frozen=True)
class Cost:
    """What all sessions together need for one change."""

    requests: int
    bytes: int


async def costs(zk_chroot: str, count: int, assign: Assignor) -> dict[str, Cost]:
    """Return what it costs ``count`` members that one more joins, and that it leaves."""
    partitions = PER_MEMBER * count
    name = f"g-{count}"
    found: dict[str, Cost] = {}

    def member(session: ZkSession) -> Group:
        topics = {"jobs": partitions}
        return Group(session, name, topics=topics, assignors=[assign], settings=PATIENT)

    def is_settled(*groups: Group) -> bool:
        return sum(len(group.owned) for group in groups) == partitions and all(
            len(group.metadata.members) == len(groups)
            and group.metadata.state == "Stable"
            and group.generation == group.metadata.generation == groups[0].generation
            and all(each.has_synced for each in group.metadata.members.values())
            for group in groups
        )

    async with AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(connect(zk_chroot)) for _ in range(SESSIONS)]
        groups = [member(sessions[number % SESSIONS]) for number in range(count)]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        try:
            await eventually(lambda: is_settled(*groups), 300.0)
            traffic = Traffic(*sessions)
            async with connect(zk_chroot) as another:
                async with member(another) as newcomer:
                    await eventually(lambda: is_settled(*groups, newcomer), 300.0)
                    joined = Cost(traffic.requests.total(), traffic.bytes)
                await eventually(lambda: is_settled(*groups), 300.0)
            found["join"] = joined
            found["leave"] = Cost(
                traffic.requests.total() - joined.requests, traffic.bytes - joined.bytes
            )
        finally:
            await asyncio.gather(*(group.__aexit__(None, None, None) for group in groups))
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("assign", [sticky, cooperative_sticky])
async def test_a_rebalance_costs_no_more_than_members_plus_partitions(
    zk_chroot: str, assign: Assignor
) -> None:
    few = await costs(zk_chroot, FEW, assign)
    many = await costs(zk_chroot, MANY, assign)
    times = MANY // FEW
    for change in ("join", "leave"):
        # A session needs some requests for a change, however many members it has. How many rounds
        # there are differs from run to run: so this allows for some more of them.
        assert many[change].requests < times / 2 * few[change].requests
        # Each of them brings the group, which has all members and partitions.
        assert many[change].bytes < 5 * times * few[change].bytes
