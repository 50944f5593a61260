"""Members with an ``instance_id``: they restart without a rebalance, and only one has the name."""

import pytest

from shoal.coordination.errors import FencedInstanceId
from shoal.coordination.group import (
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
