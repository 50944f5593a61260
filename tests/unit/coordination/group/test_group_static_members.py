"""Members with an ``instance_id``: they restart without a rebalance, and only one has the name."""

from dataclasses import replace

import pytest

from shoal.coordination.errors import FencedInstanceId
from shoal.coordination.group import (
    Answer,
    Assigned,
    GroupState,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Request,
    Sync,
)
from tests.unit.coordination.group.group_table import DELAY_S, P0, P1, TIMEOUT_S, Table, error_of


@pytest.fixture
def table() -> Table:
    return Table()


def static_pair(table: Table) -> tuple[str, str]:
    for instance_id in ("i1", "i2"):
        table.join(instance_id=instance_id)
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    first, second = table.group.members
    table.stable(first, second)
    return first, second


def test_a_static_member_needs_no_id_to_join(table: Table) -> None:
    static_pair(table)
    assert [m.join.instance_id for m in table.group.members.values()] == ["i1", "i2"]


@pytest.mark.parametrize("instance_id", ["i1", "i2"])
def test_a_static_member_restarts_without_a_rebalance(table: Table, instance_id: str) -> None:
    pair = dict(zip(["i1", "i2"], static_pair(table), strict=True))
    old_id = pair[instance_id]
    had = table.group.assignment[old_id]
    [joined] = table.join(instance_id=instance_id)
    assert isinstance(joined, Joined)
    assert joined.generation == 1
    assert joined.members == ()  # nothing to assign, even for the leader
    assert table.is_in(GroupState.STABLE)
    new_id = joined.to
    assert table.ask(Sync(new_id, 1, instance_id)) == [Assigned(new_id, 1, had)]
    assert (table.group.leader_id == new_id) == (instance_id == "i1")


def test_the_one_that_was_replaced_is_fenced(table: Table) -> None:
    old_id, _ = static_pair(table)
    table.join(instance_id="i1")
    before = table.group
    requests: list[Request] = [
        Heartbeat(old_id, 1, "i1"),
        Sync(old_id, 1, "i1"),
        Join(old_id, "fresh", ["range"], {"jobs": 2}, TIMEOUT_S, "i1"),
    ]
    for request in requests:
        [refused] = table.ask(request)
        assert error_of(refused, FencedInstanceId).instance_id == "i1"
    assert table.group == before


def test_one_that_is_replaced_while_it_waits_is_told(table: Table) -> None:
    table.join(instance_id="i1")
    [old_id] = table.group.members
    [refused] = table.join(instance_id="i1")
    assert refused.to == old_id
    error_of(refused, FencedInstanceId)


def test_a_static_member_that_wants_other_topics_after_its_restart_rebalances(
    table: Table,
) -> None:
    static_pair(table)
    assert table.join(instance_id="i2", topics=["mail"]) == []
    assert table.is_in(GroupState.PREPARING_REBALANCE)


def test_a_static_member_that_had_to_give_something_up_rebalances_when_it_restarts(
    table: Table,
) -> None:
    first, second = static_pair(table)
    table.join(second, instance_id="i2", owned=[P0, P1])
    table.join(first, instance_id="i1")
    table.ask(Sync(first, 2, "i1", {first: [], second: [P1]}))  # P0 is held back from the first
    table.ask(Sync(second, 2, "i2"))
    assert table.is_in(GroupState.STABLE)
    assert table.join(instance_id="i2") == []
    assert table.is_in(GroupState.PREPARING_REBALANCE)


def test_a_static_member_is_not_evicted_for_joining_late(table: Table) -> None:
    first, second = static_pair(table)
    table.join(first, instance_id="i1", topics=["mail"])
    [joined] = table.pass_time(TIMEOUT_S)
    assert list(table.group.members) == [first, second]
    assert table.is_in(GroupState.COMPLETING_REBALANCE)
    assert isinstance(joined, Joined)
    # It may still work on what it was given since it last said what it owns.
    assert [list(member.owned) for member in joined.members] == [[], [P1]]


def test_a_static_member_that_restarts_during_a_rebalance_keeps_its_place(table: Table) -> None:
    """Its place is for its grace, which may be longer than the rebalance timeout."""
    first, second = static_pair(table)
    table.join(first, instance_id="i1", topics=["mail"])
    table.join(second, instance_id="i2")
    table.ask(Sync(first, 2, "i1", {first: [P0], second: [P1]}))
    before = table.group.deadline_s  # the second has not asked for its partitions
    table.pass_time(TIMEOUT_S)
    assert (before is None, table.group.deadline_s) == (False, None)
    assert list(table.group.members) == [first, second]
    assert table.is_in(GroupState.STABLE)
    [joined] = table.join(instance_id="i2")
    assert isinstance(joined, Joined)
    assert joined.generation == 2


def test_a_static_leader_that_does_not_assign_passes_the_lead_and_keeps_its_place(
    table: Table,
) -> None:
    first, second = static_pair(table)
    table.join(first, instance_id="i1", topics=["mail"])
    table.join(second, instance_id="i2")
    table.ask(Sync(second, 2, "i2"))
    table.pass_time(TIMEOUT_S)
    assert table.is_in(GroupState.PREPARING_REBALANCE)
    assert (list(table.group.members), table.group.leader_id) == ([first, second], second)


def test_a_member_that_asks_for_nothing_is_evicted_beside_static_ones(table: Table) -> None:
    leader = table.new()
    table.join(instance_id="i1")
    late = table.new()
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    [static] = [m.id for m in table.group.members.values() if m.join.instance_id]
    table.ask(Sync(leader, 1, assignment={leader: [P0], late: [P1]}))
    assert table.is_in(GroupState.STABLE)
    table.pass_time(TIMEOUT_S)
    assert list(table.group.members) == [leader, static]
    assert table.is_in(GroupState.PREPARING_REBALANCE)


def test_a_static_member_takes_only_the_place_of_members_that_it_knows(table: Table) -> None:
    """A process that comes back names its own former ids; a new one replaces any member."""
    first, _ = static_pair(table)

    def come_back(*known: str) -> list[Answer]:
        join = Join(None, "back", ["range"], {"jobs": 2}, TIMEOUT_S, "i1")
        return table.ask(replace(join, replaceable=frozenset(known)))

    before = table.group
    [refused] = come_back("some older id")
    assert error_of(refused, FencedInstanceId).instance_id == "i1"
    assert table.group == before
    [joined] = come_back("some older id", first)
    assert isinstance(joined, Joined)
    assert "back" in table.group.members


def test_static_members_alone_that_are_all_away_are_waited_for(table: Table) -> None:
    first, second = static_pair(table)
    third = table.new()
    table.ask(Leave(third))
    table.pass_time(TIMEOUT_S)
    assert table.is_in(GroupState.PREPARING_REBALANCE)
    table.join(second, instance_id="i2")
    answers = table.pass_time(TIMEOUT_S)
    assert [answer.to for answer in answers] == [second]
    assert table.group.leader_id == second
    assert first in table.group.members


def test_a_static_member_whose_session_ends_is_gone(table: Table) -> None:
    first, second = static_pair(table)
    table.ask(Leave(first))
    assert list(table.group.members) == [second]
    assert table.is_in(GroupState.PREPARING_REBALANCE)
