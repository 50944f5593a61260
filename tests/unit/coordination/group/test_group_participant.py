"""What a member does next, for one view of its group after the other."""

from types import NoneType

from shoal.coordination.assignors import Assignor, Partition, cooperative_sticky, sticky
from shoal.coordination.group import (
    GroupMetadata,
    GroupState,
    Join,
    Leave,
    Participant,
    ParticipantStep,
    Sync,
    Tick,
    decide,
)
from shoal.coordination.group.instance_claim import InstanceClaim

P0, P1 = Partition("jobs", 0), Partition("jobs", 1)
DELAY_S, TIMEOUT_S = 3.0, 60.0


class Node:
    """The group's node in ZooKeeper, without faults."""

    def __init__(self) -> None:
        self.group = GroupMetadata("g", initial_rebalance_delay_s=DELAY_S)
        self.registered: set[str] = set()
        self.now_s = 0.0

    def member(
        self,
        name: str,
        *,
        partitions: int = 2,
        cooperative: bool = True,
        instance_id: str | None = None,
        claim: InstanceClaim | None = None,
    ) -> Participant:
        self.registered.add(name)
        assign: Assignor = cooperative_sticky if cooperative else sticky
        return Participant(
            name,
            {"assign": assign},
            {"jobs": partitions},
            rebalance_timeout_s=TIMEOUT_S,
            cooperative=cooperative,
            instance_id=instance_id,
            claim=claim,
        )

    def turn(self, participant: Participant) -> ParticipantStep:
        step = participant.step(self.group, self.registered, self.now_s)
        if step.request is not None:
            self.group = decide(self.group, step.request, self.now_s).group
        return step

    def settle(self, *participants: Participant) -> None:
        """Let them take turns until nobody has anything to do."""
        for _ in range(20):
            steps = [self.turn(participant) for participant in participants]
            if all(step == ParticipantStep() for step in steps):
                if self.group.deadline_s is None:
                    return
                self.now_s = self.group.deadline_s
        raise AssertionError(f"still busy: {steps}")


def test_a_lone_member_gets_everything() -> None:
    node = Node()
    alone = node.member("a")
    node.settle(alone)
    assert alone.owned == {P0, P1}


def test_a_cooperative_member_gives_up_only_what_must_move_and_joins_again() -> None:
    node = Node()
    old = node.member("a")
    node.settle(old)
    new = node.member("b")
    node.turn(new)  # asks for an id
    node.turn(new)  # joins
    step = node.turn(old)
    assert (step.revoked, old.owned) == ((), {P0, P1})
    assert isinstance(step.request, Join)
    assert step.request.owned == (P0, P1)
    step = node.turn(old)
    assert isinstance(step.request, Sync)
    assert step.request.assignment == {"a": [P0], "b": []}
    step = node.turn(old)
    assert (step.revoked, step.assigned) == ((P1,), ())
    assert isinstance(step.request, Join)
    assert step.request.owned == (P0,)
    node.settle(old, new)
    assert (old.owned, new.owned) == ({P0}, {P1})
    assert node.group.generation == 3


def test_members_that_must_give_up_partitions_do_so_in_one_generation() -> None:
    """Also those that see the assignment only when another member has joined again."""
    node = Node()
    old = [node.member(name, partitions=8) for name in "abcd"]
    node.settle(*old)
    before = node.group.generation
    new = [node.member(name, partitions=8) for name in "efgh"]
    for member in (*new, *new, *old):
        node.turn(member)
    first, *late = old
    node.turn(first)  # assigns
    assert node.turn(first).revoked  # and joins again without that
    assert node.group.state is GroupState.PREPARING_REBALANCE
    for member in late:
        step = node.turn(member)
        assert len(step.revoked) == len(member.owned) == 1
        assert isinstance(step.request, Join)
        assert step.request.owned == tuple(member.owned)
        assert node.turn(member).revoked == ()
    node.settle(*old, *new)
    assert node.group.generation == before + 2
    assert [len(member.owned) for member in (*old, *new)] == [1] * 8


def test_an_eager_member_gives_up_everything_before_it_joins_again() -> None:
    node = Node()
    old = node.member("a", cooperative=False)
    node.settle(old)
    new = node.member("b", cooperative=False)
    node.turn(new)
    node.turn(new)
    step = node.turn(old)
    assert step.revoked == (P0, P1)
    assert isinstance(step.request, Join)
    assert step.request.owned == ()
    node.settle(old, new)
    assert len(old.owned) == len(new.owned) == 1


def test_an_evicted_member_has_lost_its_partitions_and_comes_back() -> None:
    node = Node()
    slow, quick = node.member("a"), node.member("b")
    node.settle(slow, quick)
    had = set(slow.owned)
    node.group = decide(node.group, Leave("a"), node.now_s).group
    node.settle(quick)
    assert quick.owned == {P0, P1}
    step = node.turn(slow)
    assert (set(step.lost), step.revoked) == (had, ())
    node.settle(slow, quick)
    assert len(slow.owned) == len(quick.owned) == 1


def test_what_ends_with_the_session_is_lost_not_revoked() -> None:
    node = Node()
    alone = node.member("a")
    node.settle(alone)
    assert alone.end_session() == ParticipantStep(lost=(P0, P1))
    assert alone.owned == set()


def test_a_fenced_member_loses_everything_and_asks_for_nothing() -> None:
    node = Node()
    old = node.member("a", instance_id="i")
    node.settle(old)
    new = node.member("b", instance_id="i")
    node.turn(new)
    assert node.turn(old) == ParticipantStep(lost=(P0, P1))
    assert old.is_fenced
    assert node.turn(old) == ParticipantStep()
    generation = node.group.generation
    node.settle(new)
    assert (new.owned, node.group.generation) == ({P0, P1}, generation)


# ------------------------------------------------------------------ lives of one instance id


def test_a_replaced_static_member_is_fenced_in_its_next_life_too() -> None:
    node, claim = Node(), InstanceClaim()
    old = node.member("a1", instance_id="i", claim=claim)
    node.settle(old)
    new = node.member("b", instance_id="i")
    node.settle(new)
    again = node.member("a2", instance_id="i", claim=claim)
    assert node.turn(again) == ParticipantStep()
    assert again.is_fenced
    node.settle(new)
    assert (list(node.group.members), new.owned) == (["b"], {P0, P1})


def test_a_static_member_keeps_its_place_from_life_to_life() -> None:
    node, claim = Node(), InstanceClaim()
    node.settle(node.member("a1", instance_id="i", claim=claim))
    generation = node.group.generation
    for name in ("a2", "a3"):
        again = node.member(name, instance_id="i", claim=claim)
        requests = [node.turn(again).request for _ in range(3)]
        assert [type(request) for request in requests] == [Join, NoneType, NoneType]  # one write
        assert (list(node.group.members), again.owned) == ([name], {P0, P1})
    assert node.group.generation == generation


def test_a_static_member_is_not_fenced_by_its_own_join_whose_answer_was_lost() -> None:
    node, claim = Node(), InstanceClaim()
    unaware = node.member("a1", instance_id="i", claim=claim)
    node.turn(unaware)  # written; but its session ends before it sees that
    again = node.member("a2", instance_id="i", claim=claim)
    node.settle(again)
    assert (list(node.group.members), again.is_fenced) == (["a2"], False)


def test_a_static_member_whose_first_join_was_lost_takes_the_place_in_its_next_life() -> None:
    node, claim = Node(), InstanceClaim()
    node.settle(node.member("before", instance_id="i"))
    unaware = node.member("a1", instance_id="i", claim=claim)
    unaware.step(node.group, node.registered, node.now_s)  # never written
    again = node.member("a2", instance_id="i", claim=claim)
    node.settle(again)
    assert (list(node.group.members), again.is_fenced) == (["a2"], False)


def test_a_static_member_whose_first_join_comes_too_late_is_still_the_younger_one() -> None:
    node, claim = Node(), InstanceClaim()
    node.settle(node.member("a1", instance_id="i", claim=claim))
    young = node.member("b", instance_id="i")
    young.step(node.group, node.registered, node.now_s)
    old = node.member("a2", instance_id="i", claim=claim)
    node.settle(old)  # it comes back before the younger one's join is written
    young.note_refusal()
    node.settle(young)
    assert (list(node.group.members), young.is_fenced) == (["b"], False)
    node.turn(old)
    assert old.is_fenced


def test_any_member_sees_off_who_is_gone_and_lets_time_pass() -> None:
    node = Node()
    first, second = node.member("a"), node.member("b")
    node.settle(first, second)
    node.registered.remove("a")
    assert node.turn(second).request == Leave("a")
    waiting = node.member("c")
    node.turn(waiting)
    node.turn(waiting)
    node.now_s += TIMEOUT_S
    assert node.turn(waiting).request == Tick()
