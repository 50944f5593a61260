"""What every assignor promises, for any members, subscriptions and claims."""

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.coordination.assignors import (
    Assignor,
    GroupMember,
    Partition,
    cooperative_sticky,
    modulo,
    range_,
    round_robin,
    sticky,
)
from shoal.coordination.assignors.coverage import assign_covered
from shoal.coordination.errors import DuplicateMember

TOPICS = ["jobs", "mail", "audit", "gone"]  # "gone" has no partitions
ANY = pytest.mark.parametrize("assignor", [range_, round_robin, modulo, sticky, cooperative_sticky])
COMPLETE = pytest.mark.parametrize("assignor", [range_, round_robin, modulo, sticky])

counts = st.dictionaries(st.sampled_from(TOPICS[:3]), st.integers(0, 7))
claims = st.lists(st.builds(Partition, st.sampled_from(TOPICS), st.integers(0, 8)), max_size=8)


@st.composite
def groups(draw: st.DrawFn, *, equal: bool = False, most: int = 6) -> list[GroupMember]:
    """Members of any past: claims may contradict each other, or be to what is not there."""
    topics = st.lists(st.sampled_from(TOPICS), unique=True)
    shared = draw(topics)
    return [
        GroupMember(
            name,
            shared if equal else draw(topics),
            draw(claims),
            draw(st.integers(-1, 3)),
            draw(st.one_of(st.none(), st.just("instance " + name))),
        )
        for name in draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=most))
    ]


def wanted(partition_counts: Mapping[str, int], members: Sequence[GroupMember]) -> list[Partition]:
    topics = {topic for member in members for topic in member.topics}
    return sorted(
        Partition(topic, index)
        for topic, count in partition_counts.items()
        if topic in topics
        for index in range(count)
    )


def flat(assigned: Mapping[str, list[Partition]]) -> list[Partition]:
    return sorted(partition for owned in assigned.values() for partition in owned)


@COMPLETE
@given(counts, groups())
def test_every_wanted_partition_is_assigned_exactly_once(
    assignor: Assignor, partition_counts: dict[str, int], members: list[GroupMember]
) -> None:
    assert flat(assignor(partition_counts, members)) == wanted(partition_counts, members)


@ANY
@given(counts, groups())
def test_everybody_is_there_and_gets_only_what_they_want(
    assignor: Assignor, partition_counts: dict[str, int], members: list[GroupMember]
) -> None:
    assigned = assignor(partition_counts, members)
    assert assigned.keys() == {member.id for member in members}
    for member in members:
        assert {partition.topic for partition in assigned[member.id]} <= set(member.topics)


@ANY
@given(counts, groups(), st.randoms(use_true_random=False))
def test_the_order_of_members_and_of_what_they_say_does_not_matter(
    assignor: Assignor,
    partition_counts: dict[str, int],
    members: list[GroupMember],
    rng: random.Random,
) -> None:
    shuffled = [
        replace(
            member,
            topics=rng.sample(member.topics, len(member.topics)),
            owned=rng.sample(member.owned, len(member.owned)),
        )
        for member in rng.sample(members, len(members))
    ]
    assert assignor(partition_counts, shuffled) == assignor(partition_counts, members)


@pytest.mark.parametrize("assignor", [round_robin, sticky])
@given(counts, groups(equal=True).filter(bool))
def test_equal_subscriptions_are_shared_evenly(
    assignor: Assignor, partition_counts: dict[str, int], members: list[GroupMember]
) -> None:
    sizes = [len(owned) for owned in assignor(partition_counts, members).values()]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("assignor", [range_, modulo])
@given(counts, groups())
def test_each_topic_is_shared_evenly_among_its_subscribers(
    assignor: Assignor, partition_counts: dict[str, int], members: list[GroupMember]
) -> None:
    assigned = assignor(partition_counts, members)
    for topic in partition_counts:
        sizes = [
            sum(partition.topic == topic for partition in assigned[member.id])
            for member in members
            if topic in member.topics
        ]
        assert not sizes or max(sizes) - min(sizes) <= 1


@ANY
def test_two_members_of_one_id_are_refused(assignor: Assignor) -> None:
    with pytest.raises(DuplicateMember, match="'a'"):
        assignor({"jobs": 1}, [GroupMember("a", ["jobs"]), GroupMember("a", ["mail"])])


# ------------------------------------------------------------------ stickiness


@st.composite
def settled(draw: st.DrawFn, *, equal: bool) -> tuple[dict[str, int], list[GroupMember]]:
    """A group in which nobody contradicts anybody: any division of what is there, or of less."""
    partition_counts = draw(
        st.dictionaries(st.sampled_from(TOPICS[:3]), st.integers(0, 5), min_size=1)
    )
    names = draw(st.lists(st.sampled_from("abcde"), unique=True, min_size=1))
    topics = {
        name: sorted(partition_counts)
        if equal
        else draw(st.lists(st.sampled_from(sorted(partition_counts)), unique=True))
        for name in names
    }
    owned: dict[str, list[Partition]] = {name: [] for name in names}
    for topic, count in partition_counts.items():
        holders = [None, *(name for name in names if topic in topics[name])]
        for index in range(count):
            holder = draw(st.sampled_from(holders))
            if holder is not None:
                owned[holder].append(Partition(topic, index))
    return partition_counts, [GroupMember(name, topics[name], owned[name], 1) for name in names]


def kept(members: Sequence[GroupMember], assigned: Mapping[str, list[Partition]]) -> int:
    return sum(len(set(member.owned) & set(assigned[member.id])) for member in members)


@given(settled(equal=True))
def test_no_assignment_as_even_keeps_more(group: tuple[dict[str, int], list[GroupMember]]) -> None:
    partition_counts, members = group
    partitions = wanted(partition_counts, members)[:6]
    members = [
        replace(member, owned=[each for each in member.owned if each in partitions])
        for member in members[:3]
    ]
    partition_counts = Counter(partition.topic for partition in partitions)
    members = [replace(member, topics=list(partition_counts)) for member in members]
    quota = len(partitions) // len(members)
    best = 0
    for owners in itertools.product(members, repeat=len(partitions)):
        sizes = Counter(member.id for member in owners)
        if all(quota <= sizes[member.id] <= quota + 1 for member in members):
            pairs = zip(owners, partitions, strict=True)
            best = max(best, sum(partition in owner.owned for owner, partition in pairs))
    assert kept(members, sticky(partition_counts, members)) == best


@given(settled(equal=False))
def test_unequal_subscriptions_are_as_even_as_single_moves_can_make_them(
    group: tuple[dict[str, int], list[GroupMember]],
) -> None:
    partition_counts, members = group
    assigned = sticky(partition_counts, members)
    for giver, taker in itertools.permutations(members, 2):
        if any(partition.topic in taker.topics for partition in assigned[giver.id]):
            assert len(assigned[giver.id]) <= len(assigned[taker.id]) + 1


def pairs_that_exchange(
    partition_counts: Mapping[str, int], members: Sequence[GroupMember]
) -> set[tuple[str, str, str]]:
    owner = {partition: member.id for member in members for partition in member.owned}
    moves = {
        (partition.topic, owner[partition], name)
        for name, owned in sticky(partition_counts, members).items()
        for partition in owned
        if owner.get(partition, name) != name
    }
    return {(topic, target, source) for topic, source, target in moves} & moves


@given(settled(equal=False))
def test_between_two_members_partitions_of_a_topic_move_in_one_direction_only(
    group: tuple[dict[str, int], list[GroupMember]],
) -> None:
    assert not pairs_that_exchange(*group)


def test_partitions_that_crossed_each_other_on_the_way_go_home() -> None:
    crowded = [Partition("t0", 1), Partition("t0", 3), *(Partition("t1", i) for i in range(4))]
    members = [
        GroupMember("c0", ["t0"], [Partition("t0", 0), Partition("t0", 2)], 1),
        GroupMember("c1", ["t0", "t1"], crowded, 1),
        GroupMember("c2", ["t1"], [], 1),
    ]
    assert not pairs_that_exchange({"t0": 4, "t1": 4}, members)


@pytest.mark.parametrize("equal", [True, False])
@given(st.data())
def test_a_result_is_its_own_successor(equal: bool, data: st.DataObject) -> None:
    partition_counts, members = data.draw(settled(equal=equal))
    before = sticky(partition_counts, members)
    for assignor in (sticky, cooperative_sticky):
        again = assignor(partition_counts, [replace(m, owned=before[m.id]) for m in members])
        assert {name: set(owned) for name, owned in again.items()} == {
            name: set(owned) for name, owned in before.items()
        }


@given(settled(equal=True), st.data())
def test_when_a_member_goes_the_others_lose_nothing(
    group: tuple[dict[str, int], list[GroupMember]], data: st.DataObject
) -> None:
    partition_counts, members = group
    before = sticky(partition_counts, members)
    staying = [replace(m, owned=before[m.id]) for m in members]
    staying.remove(data.draw(st.sampled_from(staying)))
    after = sticky(partition_counts, staying)
    for member in staying:
        assert set(before[member.id]) <= set(after[member.id])


# ------------------------------------------------------------------ cooperation


def next_round(
    members: Sequence[GroupMember], assigned: Mapping[str, list[Partition]], generation: int
) -> list[GroupMember]:
    return [replace(m, owned=assigned[m.id], generation=generation) for m in members]


@given(counts, groups())
def test_nobody_gets_what_another_one_may_still_hold(
    partition_counts: dict[str, int], members: list[GroupMember]
) -> None:
    assigned = cooperative_sticky(partition_counts, members)
    for member in members:
        for partition in assigned[member.id]:
            others = [m.generation for m in members if m is not member and partition in m.owned]
            if others:  # then it is its own, by the newest claim
                assert partition in member.owned
                assert member.generation > max(others)


@given(counts, groups())
def test_what_is_not_held_back_is_as_sticky_says(
    partition_counts: dict[str, int], members: list[GroupMember]
) -> None:
    whole = sticky(partition_counts, members)
    part = cooperative_sticky(partition_counts, members)
    for member in members:
        assert set(part[member.id]) <= set(whole[member.id])
    held_back = set(flat(whole)) - set(flat(part))
    assert held_back <= {partition for member in members for partition in member.owned}


@given(counts, groups(equal=True))
def test_two_rounds_complete_a_change_of_equal_subscriptions(
    partition_counts: dict[str, int], members: list[GroupMember]
) -> None:
    first = cooperative_sticky(partition_counts, members)
    then = cooperative_sticky(partition_counts, next_round(members, first, generation=4))
    assert flat(then) == wanted(partition_counts, members)
    for member in members:
        assert set(first[member.id]) <= set(then[member.id])


@given(counts, groups())
def test_a_few_rounds_complete_any_change(
    partition_counts: dict[str, int], members: list[GroupMember]
) -> None:
    for generation in range(4, 8):
        assigned = cooperative_sticky(partition_counts, members)
        members = next_round(members, assigned, generation)
        if flat(assigned) == wanted(partition_counts, members):
            return
    pytest.fail("partitions were still held back after four rounds")


def test_a_second_master_takes_half_and_disturbs_nothing_else() -> None:
    alone = GroupMember("m1", ["partitions"], [Partition("partitions", i) for i in range(128)], 1)
    joined = [alone, GroupMember("m2", ["partitions"])]
    first = cooperative_sticky({"partitions": 128}, joined)
    assert (len(first["m1"]), first["m2"]) == (64, [])
    then = cooperative_sticky({"partitions": 128}, next_round(joined, first, generation=2))
    assert then["m1"] == first["m1"]
    assert len(then["m2"]) == 64


def test_modulo_is_predictable() -> None:
    members = [GroupMember("b", ["jobs"]), GroupMember("a", ["jobs"]), GroupMember("c", ["mail"])]
    assert modulo({"jobs": 5}, members) == {
        "a": [Partition("jobs", 0), Partition("jobs", 2), Partition("jobs", 4)],
        "b": [Partition("jobs", 1), Partition("jobs", 3)],
        "c": [],
    }


@ANY
@given(st.lists(counts, min_size=1, max_size=5), st.data())
def test_members_that_disagree_about_counts_get_only_what_they_know_and_leave_nothing(
    assignor: Assignor, known: list[dict[str, int]], data: st.DataObject
) -> None:
    by_name = dict(zip("abcde", known, strict=False))
    largest: dict[str, int] = {}
    for each in known:
        largest |= {topic: max(count, largest.get(topic, 0)) for topic, count in each.items()}
    members = [
        GroupMember(name, tuple(each), tuple(data.draw(claims)), data.draw(st.integers(-1, 3)))
        for name, each in by_name.items()
    ]
    assigned = assign_covered(assignor, largest, members, by_name)
    for _ in range(2 if assignor is cooperative_sticky else 0):  # what is to move moves
        members = [replace(m, owned=tuple(assigned[m.id]), generation=9) for m in members]
        assigned = assign_covered(assignor, largest, members, by_name)
    for name, given_to in assigned.items():
        assert all(each.index < by_name[name].get(each.topic, 0) for each in given_to)
    assert flat(assigned) == wanted(largest, members)
