"""The parts of a group that need no server: settings, clock, callbacks, checks of an assignment."""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from shoal.coordination import GroupListener, GroupMetadata, GroupSettings, Partition
from shoal.coordination.assignors import (
    Assignor,
    GroupMember,
    RebalanceProtocol,
    cooperative_sticky,
    modulo,
    name_of,
    protocol_of,
    range_,
    round_robin,
    sticky,
)
from shoal.coordination.errors import AssignorFailed
from shoal.coordination.group import Join, MemberState
from shoal.coordination.group.listener import HeldPartitions, TooSlow
from shoal.coordination.group.participant import assign_all
from shoal.coordination.group.store import EnsembleClock
from shoal.coordination.session.wire import Stat

P0, P1 = Partition("jobs", 0), Partition("jobs", 1)
BOTH = frozenset({P0, P1})


# ------------------------------------------------------------------ settings, assignors


@pytest.mark.parametrize(
    "wrong",
    [
        {"rebalance_timeout_s": 0.0},
        {"max_poll_interval_s": 0.0},
        {"reread_s": -1.0},
        {"initial_rebalance_delay_s": -0.1},
        {"static_grace_s": -0.1},
        {"static_grace_s": math.nan},
        {"rebalance_timeout_s": math.nan},
        {"rebalance_timeout_s": math.inf},
        {"instance_id": ""},
        {"instance_id": " \t"},
        {"instance_id": "i\ud800"},
        {"instance_id": "i" * 250},
        {"instance_id": 7},
        {"client_id": "host\udfff"},
        {"client_id": 7},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    [name] = wrong
    with pytest.raises(ValueError, match=name):
        replace(GroupSettings(), **wrong)


def test_no_delay_and_no_grace_are_fine() -> None:
    settings = GroupSettings(initial_rebalance_delay_s=0.0, static_grace_s=0.0)
    assert settings.max_poll_interval_s is None


@pytest.mark.parametrize(
    ("assign", "name", "protocol"),
    [
        (range_, "range", RebalanceProtocol.EAGER),
        (round_robin, "round-robin", RebalanceProtocol.EAGER),
        (modulo, "modulo", RebalanceProtocol.EAGER),
        (sticky, "sticky", RebalanceProtocol.EAGER),
        (cooperative_sticky, "cooperative-sticky", RebalanceProtocol.COOPERATIVE),
    ],
)
def test_assignors_have_names_and_protocols(
    assign: Assignor, name: str, protocol: RebalanceProtocol
) -> None:
    assert (name_of(assign), protocol_of(assign)) == (name, protocol)


def test_an_assignor_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="use a def"):
        name_of(lambda _counts, _members: {})


# ------------------------------------------------------------------ the leader's part


def group_of(**topics_of: Mapping[str, int]) -> GroupMetadata:
    members = {
        name: MemberState(name, Join(name, name, ["own"], topics, 60.0))
        for name, topics in topics_of.items()
    }
    return GroupMetadata("g", assignor="own", members=members)


def test_the_leader_shares_out_topics_that_only_others_want() -> None:
    group = group_of(a={"jobs": 2}, b={"mail": 1})
    assert group.partition_counts == {"jobs": 2, "mail": 1}
    assert assign_all(group, range_) == {"a": [P0, P1], "b": [Partition("mail", 0)]}


def test_of_two_opinions_about_a_topic_the_larger_counts() -> None:
    group = group_of(a={"jobs": 2}, b={"jobs": 4}, c={"jobs": 3})
    assert group.partition_counts == {"jobs": 4}


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ({"stranger": [P0]}, "'stranger'"),
        ({"a": [P0], "b": [P0]}, "two members"),
        ({"a": [P0, P0]}, "two members"),
        ({"a": [Partition("jobs", 2)]}, "no member asked for"),
        ({"a": [Partition("jobs", -1)]}, "no member asked for"),
        ({"a": [Partition("mail", 0)]}, "no member asked for"),
    ],
)
def test_an_impossible_assignment_is_refused(
    assignment: dict[str, list[Partition]], words: str
) -> None:
    def own(_: Mapping[str, int], __: Sequence[GroupMember]) -> dict[str, list[Partition]]:
        return assignment

    with pytest.raises(AssignorFailed, match=words):
        assign_all(group_of(a={"jobs": 2}, b={"jobs": 2}), own)


def test_to_assign_nothing_is_allowed() -> None:
    assert assign_all(group_of(a={"jobs": 2}), lambda _counts, _members: {}) == {}


# ------------------------------------------------------------------ the clock


def stat(mtime_ms: int) -> Stat:
    return Stat(0, 0, 0, 0, 0, 0, 0, mtime_ms)


def test_the_time_is_the_ensembles_and_counts_on() -> None:
    clock = EnsembleClock()
    before = time.monotonic()
    clock.take(stat(5_000_000))
    now_s = clock.now_s()
    assert 5_000.0 <= now_s <= 5_000.0 + time.monotonic() - before
    assert clock.now_s() >= now_s
    assert 0 <= clock.age_s <= time.monotonic() - before


def test_the_newest_answer_counts_also_when_the_servers_clock_was_set_back() -> None:
    clock = EnsembleClock()
    assert clock.age_s == float("inf")
    clock.take(stat(9_000_000))
    clock.take(stat(5_000_000))
    assert clock.now_s() < 6_000


# ------------------------------------------------------------------ callbacks


class Script(GroupListener):
    """Does what the test says when it is called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.error: Exception | None = None
        self.hangs = False

    async def _do(self, call: str) -> None:
        self.calls.append(call)
        if self.error:
            raise self.error
        if self.hangs:
            await asyncio.Event().wait()

    async def on_assigned(self, partitions: frozenset[Partition]) -> None:
        await self._do(f"assigned {len(partitions)}")

    async def on_revoked(self, partitions: frozenset[Partition]) -> None:
        await self._do(f"revoked {len(partitions)}")

    async def on_lost(self, partitions: frozenset[Partition]) -> None:
        await self._do(f"lost {len(partitions)}")


def held(script: Script, limit_s: float = 60.0) -> HeldPartitions:
    return HeldPartitions(script, "g", limit_s)


async def test_what_was_assigned_is_held_until_it_is_revoked_or_lost() -> None:
    script = Script()
    holder = held(script)
    await holder.assign([P0, P1])
    await holder.revoke([P0])
    assert holder.partitions == {P1}
    await holder.lose()
    assert holder.partitions == frozenset()
    await holder.lose()
    await holder.assign([])
    await holder.revoke([])
    assert script.calls == ["assigned 2", "revoked 1", "lost 1"]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), TimeoutError("its own")])
async def test_a_failing_callback_counts_as_done(error: Exception) -> None:
    script = Script()
    script.error = error
    holder = held(script)
    await holder.assign([P0, P1])
    assert holder.partitions == BOTH
    await holder.revoke([P0])
    assert holder.partitions == {P1}
    await holder.lose()
    assert script.calls == ["assigned 2", "revoked 1", "lost 1"]


async def test_a_slow_callback_is_stopped_and_what_it_was_about_is_still_held() -> None:
    script = Script()
    script.hangs = True
    holder = held(script, limit_s=0.01)
    with pytest.raises(TooSlow, match="on_assigned"):
        await holder.assign([P0, P1])
    with pytest.raises(TooSlow, match="on_revoked"):
        await holder.revoke([P0])
    assert holder.partitions == BOTH
    await holder.lose()  # nobody waits for it for ever either
    assert holder.partitions == frozenset()
    assert script.calls[-1] == "lost 2"


async def test_a_cancelled_callback_leaves_its_partitions_held() -> None:
    script = Script()
    holder = held(script)
    await holder.assign([P0, P1])
    script.hangs = True
    revoking = asyncio.create_task(holder.revoke([P0]))
    while "revoked 1" not in script.calls:
        await asyncio.sleep(0)
    revoking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await revoking
    assert holder.partitions == BOTH
