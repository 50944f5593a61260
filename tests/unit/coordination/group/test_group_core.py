"""The coordinator's decisions, one rule each. Time is a number that the tests move."""

import pytest

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import (
    CoordinatorNotAvailable,
    IllegalGeneration,
    IllegalGroupTransition,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from shoal.coordination.group import (
    Alive,
    Assigned,
    DeleteGroup,
    GroupSignal,
    GroupState,
    Heartbeat,
    Joined,
    Leave,
    Sync,
    Tick,
)
from shoal.coordination.group.states import TRANSITIONS, next_state
from tests.unit.coordination.group.group_table import DELAY_S, P0, P1, TIMEOUT_S, Table, error_of


@pytest.fixture
def table() -> Table:
    return Table()


# ------------------------------------------------------------------ the transition table


@pytest.mark.parametrize("signal", GroupSignal)
@pytest.mark.parametrize("state", GroupState)
def test_what_is_not_in_the_table_is_illegal(state: GroupState, signal: GroupSignal) -> None:
    if (state, signal) in TRANSITIONS:
        assert next_state(state, signal) is TRANSITIONS[state, signal]
    else:
        with pytest.raises(IllegalGroupTransition, match=state.value):
            next_state(state, signal)


def test_every_state_can_be_reached_and_only_dead_is_final() -> None:
    assert {GroupState.EMPTY, *TRANSITIONS.values()} == set(GroupState)
    assert set(GroupState) - {state for state, _ in TRANSITIONS} == {GroupState.DEAD}


# ------------------------------------------------------------------ joining and electing


def test_a_new_member_is_told_its_id_first(table: Table) -> None:
    [refused] = table.join()
    member_id = error_of(refused, MemberIdRequired).member_id
    assert table.is_in(GroupState.EMPTY)
    assert table.group.pending == {member_id}
    assert table.join(member_id) == []  # the answer comes when the generation is complete
    assert table.is_in(GroupState.PREPARING_REBALANCE)
    assert table.group.pending == frozenset()


def test_an_id_that_was_never_given_out_is_unknown(table: Table) -> None:
    [refused] = table.join("somebody")
    error_of(refused, UnknownMemberId)


def test_the_first_generation_waits_for_companions_as_long_as_they_come(table: Table) -> None:
    first = table.new()
    table.now_s += 2.0
    second = table.new()
    assert table.pass_time(1.0) == []  # somebody came: another delay
    answers = table.pass_time(DELAY_S)
    assert [(type(answer), answer.to) for answer in answers] == [(Joined, first), (Joined, second)]
    leader, follower = answers
    assert isinstance(leader, Joined)
    assert isinstance(follower, Joined)
    assert [member.id for member in leader.members] == [first, second]
    assert follower.members == ()
    assert leader.leader_id == follower.leader_id == first
    assert leader.generation == follower.generation == 1


def test_the_first_generation_does_not_wait_longer_than_the_rebalance_timeout(table: Table) -> None:
    table.new()
    begun_s = table.now_s
    while table.is_in(GroupState.PREPARING_REBALANCE):
        assert table.group.deadline_s is not None
        table.now_s = table.group.deadline_s
        table.new()
        table.ask(Tick())
    assert table.now_s == begun_s + TIMEOUT_S


def test_a_tick_before_the_deadline_changes_nothing(table: Table) -> None:
    table.new()
    before = table.group
    assert table.pass_time(DELAY_S - 0.1) == []
    assert table.group == before


def test_a_later_rebalance_ends_as_soon_as_all_have_joined(table: Table) -> None:
    leader, follower = table.two()
    third = table.new()
    assert table.join(leader) == []
    answers = table.join(follower)
    assert [answer.to for answer in answers] == [leader, follower, third]
    assert table.group.generation == 2
    assert table.is_in(GroupState.COMPLETING_REBALANCE)


def test_a_rebalance_waits_for_who_was_just_given_an_id(table: Table) -> None:
    leader, follower = table.two()
    table.join()
    [pending] = table.group.pending
    table.join(leader, topics=["jobs", "mail"])
    assert table.join(follower) == []
    assert len(table.join(pending)) == 3


def test_who_was_given_an_id_and_went_is_not_waited_for(table: Table) -> None:
    leader, follower = table.two()
    table.join()
    [pending] = table.group.pending
    table.join(leader)
    table.join(follower)
    assert [answer.to for answer in table.ask(Leave(pending))] == [leader, follower]


# ------------------------------------------------------------------ votes


def test_the_assignor_that_all_support_and_most_prefer_is_chosen(table: Table) -> None:
    table.new(assignors=["range", "sticky", "modulo"])
    table.new(assignors=["own", "sticky", "range"])
    table.new(assignors=["sticky", "range"])
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    assert table.group.assignor == "sticky"


def test_equal_votes_are_decided_by_the_oldest_member(table: Table) -> None:
    table.new(assignors=["sticky", "range"])
    table.new(assignors=["range", "sticky"])
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    assert table.group.assignor == "sticky"


def test_a_member_without_a_common_assignor_is_refused_and_leaves_no_trace(table: Table) -> None:
    table.two()
    before = table.group
    for assignors in (["sticky"], []):
        for instance_id in (None, "i1"):
            [refused] = table.join(assignors=assignors, instance_id=instance_id)
            assert error_of(refused, InconsistentGroupProtocol).offered == assignors
    assert table.group == before


# ------------------------------------------------------------------ syncing


def test_partitions_are_told_when_the_leader_has_assigned_them(table: Table) -> None:
    leader, follower = table.new(), table.new()
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    assert table.ask(Sync(follower, 1)) == []
    assert table.ask(Sync(leader, 1, assignment={leader: [P0], follower: [P1]})) == [
        Assigned(leader, 1, (P0,)),
        Assigned(follower, 1, (P1,)),
    ]
    assert table.ask(Sync(follower, 1)) == [Assigned(follower, 1, (P1,))]  # the answer was lost
    assert table.group.deadline_s is None


def test_only_the_leader_can_assign(table: Table) -> None:
    _, follower = table.new(), table.new()
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    assert table.ask(Sync(follower, 1, assignment={follower: [P0, P1]})) == []
    assert table.is_in(GroupState.COMPLETING_REBALANCE)


@pytest.mark.parametrize("request_type", [Sync, Heartbeat])
def test_requests_of_another_generation_or_of_strangers_are_refused(
    table: Table, request_type: type[Sync] | type[Heartbeat]
) -> None:
    leader, _ = table.two()
    before = table.group
    for generation in (0, 2):
        [refused] = table.ask(request_type(leader, generation))
        assert error_of(refused, IllegalGeneration).current == 1
    [refused] = table.ask(request_type("stranger", 1))
    error_of(refused, UnknownMemberId)
    assert table.group == before


@pytest.mark.parametrize("request_type", [Sync, Heartbeat])
def test_members_learn_of_a_rebalance_from_any_request(
    table: Table, request_type: type[Sync] | type[Heartbeat]
) -> None:
    leader, _ = table.two()
    assert table.ask(Heartbeat(leader, 1)) == [Alive(leader)]
    table.new()
    [refused] = table.ask(request_type(leader, 1))
    error_of(refused, RebalanceInProgress)


def test_who_waits_for_partitions_learns_that_there_will_be_none(table: Table) -> None:
    leader, follower = table.new(), table.new()
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    table.ask(Sync(follower, 1))
    [refused] = table.ask(Leave(leader))
    assert refused.to == follower
    error_of(refused, RebalanceInProgress)
    assert table.group.leader_id == follower


def test_a_lost_answer_to_a_join_is_given_again(table: Table) -> None:
    leader, follower = table.new(), table.new()
    table.pass_time(DELAY_S)
    first = table.pass_time(DELAY_S)
    assert table.join(leader) + table.join(follower) == first
    assert table.group.generation == 1


# ------------------------------------------------------------------ changes in a stable group


def test_a_follower_that_has_nothing_new_to_say_disturbs_nobody(table: Table) -> None:
    _, follower = table.two()
    before = table.group
    assert [type(answer) for answer in table.join(follower)] == [Joined]
    assert table.group == before


@pytest.mark.parametrize(("topics", "owned"), [(["mail"], []), (["jobs"], [P0])])
def test_a_member_with_news_makes_the_group_rebalance(
    table: Table, topics: list[str], owned: list[Partition]
) -> None:
    _, follower = table.two()
    table.join(follower, topics=topics, owned=owned)
    assert table.is_in(GroupState.PREPARING_REBALANCE)


def test_the_leader_can_ask_for_a_new_assignment(table: Table) -> None:
    leader, _ = table.two()
    table.join(leader)
    assert table.is_in(GroupState.PREPARING_REBALANCE)


def test_when_a_member_goes_the_others_rebalance(table: Table) -> None:
    leader, follower = table.two()
    table.ask(Leave(leader))
    [joined] = table.join(follower)
    assert isinstance(joined, Joined)
    assert (joined.generation, joined.leader_id) == (2, follower)
    assert [member.id for member in joined.members] == [follower]


def test_when_all_go_the_group_is_empty_and_its_generation_has_passed(table: Table) -> None:
    for member in table.two():
        table.ask(Leave(member))
    assert (table.group.state, table.group.generation) == (GroupState.EMPTY, 2)
    assert (table.group.leader_id, table.group.deadline_s) == (None, None)


# ------------------------------------------------------------------ eviction


def test_who_does_not_join_in_time_is_evicted_and_may_come_back(table: Table) -> None:
    leader, follower = table.two()
    third = table.new()
    table.join(follower)
    answers = table.pass_time(TIMEOUT_S)
    assert [answer.to for answer in answers] == [follower, third]
    assert table.group.leader_id == follower
    [refused] = table.join(leader)
    error_of(refused, UnknownMemberId)
    assert table.new() in table.group.members


def test_a_leader_that_does_not_assign_in_time_is_succeeded(table: Table) -> None:
    leader, follower = table.new(), table.new()
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    table.ask(Sync(follower, 1))
    [refused] = table.pass_time(TIMEOUT_S)
    error_of(refused, RebalanceInProgress)
    assert leader not in table.group.members
    [joined] = table.join(follower)
    assert isinstance(joined, Joined)
    assert joined.leader_id == follower


def test_who_does_not_ask_for_its_partitions_in_time_is_evicted(table: Table) -> None:
    leader, follower = table.new(), table.new()
    table.pass_time(DELAY_S)
    table.pass_time(DELAY_S)
    table.ask(Sync(leader, 1, assignment={leader: [P0], follower: [P1]}))
    assert table.is_in(GroupState.STABLE)
    table.pass_time(TIMEOUT_S)
    assert list(table.group.members) == [leader]
    assert table.is_in(GroupState.PREPARING_REBALANCE)


# ------------------------------------------------------------------ the end


def test_a_deleted_group_answers_nobody_any_more(table: Table) -> None:
    leader, _ = table.two()
    waiting = table.new()
    [refused] = table.ask(DeleteGroup())
    assert refused.to == waiting
    error_of(refused, CoordinatorNotAvailable)
    assert table.is_in(GroupState.DEAD)
    for request in (Heartbeat(leader, 1), Leave(leader), DeleteGroup(), Tick()):
        [refused] = table.ask(request)
        error_of(refused, CoordinatorNotAvailable)
    [refused] = table.join()
    error_of(refused, CoordinatorNotAvailable)
