"""The cases by which Apache Kafka 3.8 defines its assignors (without racks), retold.

Sources: RangeAssignorTest, RoundRobinAssignorTest, AbstractStickyAssignorTest and
CooperativeStickyAssignorTest of Apache Kafka. A partition is written "topic:index".
"""

from collections import Counter

import pytest

from shoal.coordination.assignors import (
    Assignor,
    GroupMember,
    Partition,
    cooperative_sticky,
    range_,
    round_robin,
    sticky,
)


def partitions(text: str) -> list[Partition]:
    pairs = (word.split(":") for word in text.split())
    return [Partition(topic, int(index)) for topic, index in pairs]


def member(
    name: str, topics: str, owned: str = "", generation: int = 1, instance_id: str | None = None
) -> GroupMember:
    return GroupMember(name, topics.split(), partitions(owned), generation, instance_id)


def check(
    assignor: Assignor, counts: dict[str, int], members: list[GroupMember], **expected: str
) -> None:
    """Compare as Kafka's tests do: what each member has, in whatever order."""
    assigned = assignor(counts, members)
    assert {name: sorted(owned) for name, owned in assigned.items()} == {
        name: sorted(partitions(owned)) for name, owned in expected.items()
    }


ALL = pytest.mark.parametrize("assignor", [range_, round_robin, sticky, cooperative_sticky])
STICKY = pytest.mark.parametrize("assignor", [sticky, cooperative_sticky])


@ALL
def test_a_lone_member_gets_all_it_wants_and_nothing_else(assignor: Assignor) -> None:
    check(assignor, {}, [member("c", "")], c="")
    check(assignor, {}, [member("c", "t")], c="")
    check(assignor, {"t": 0}, [member("c", "t")], c="")
    check(assignor, {"t": 3, "other": 3}, [member("c", "t")], c="t:0 t:1 t:2")
    check(assignor, {"t1": 1, "t2": 2}, [member("c", "t1 t2")], c="t1:0 t2:0 t2:1")


@ALL
def test_two_members_share_a_small_topic(assignor: Assignor) -> None:
    both = [member("c1", "t"), member("c2", "t")]
    check(assignor, {"t": 1}, both, c1="t:0", c2="")
    check(assignor, {"t": 2}, both, c1="t:0", c2="t:1")


# ------------------------------------------------------------------ range and round robin


def test_range_and_round_robin_with_mixed_subscriptions() -> None:
    mixed = [member("c1", "t1"), member("c2", "t1 t2"), member("c3", "t1")]
    for assignor in (range_, round_robin):
        check(assignor, {"t1": 3, "t2": 2}, mixed, c1="t1:0", c2="t1:1 t2:0 t2:1", c3="t1:2")


def test_round_robin_is_uneven_when_subscriptions_are_unequal() -> None:
    few, many = "t1 t3 t5", "t1 t2 t3 t4 t5"
    check(
        round_robin,
        {"t1": 2, "t2": 1, "t3": 2, "t4": 1, "t5": 2},
        [member("c1", many), member("c2", few), member("c3", few), member("c4", many)],
        c1="t1:0 t3:0 t5:0",
        c2="t1:1 t3:1 t5:1",
        c3="",
        c4="t2:0 t4:0",
    )


def test_two_topics_of_three() -> None:
    counts, both = {"t1": 3, "t2": 3}, [member("c1", "t1 t2"), member("c2", "t1 t2")]
    check(range_, counts, both, c1="t1:0 t1:1 t2:0 t2:1", c2="t1:2 t2:2")
    for assignor in (round_robin, sticky, cooperative_sticky):
        check(assignor, counts, both, c1="t1:0 t1:2 t2:1", c2="t1:1 t2:0 t2:2")


@pytest.mark.parametrize("second", ["i2", None])
def test_static_members_come_first_and_in_the_order_of_their_instances(second: str | None) -> None:
    members = [
        member("c-b", "t1 t2", instance_id="i1"),
        member("c-a", "t1 t2", instance_id=second),
    ]
    counts = {"t1": 3, "t2": 3}
    expected = {"c-b": "t1:0 t1:1 t2:0 t2:1", "c-a": "t1:2 t2:2"}
    check(range_, counts, members, **expected)
    expected = {"c-b": "t1:0 t1:2 t2:1", "c-a": "t1:1 t2:0 t2:2"}
    check(round_robin, counts, members, **expected)


def test_static_members_keep_theirs_when_a_dynamic_one_is_replaced() -> None:
    static = [member(f"c{n}", "t1 t2", instance_id=f"i{n}") for n in (1, 2, 3)]
    for other in ("c4", "c5"):
        members = [*static, member(other, "t1 t2")]
        expected = {"c1": "t1:0 t1:1 t2:0", "c2": "t1:2 t2:1", "c3": "t1:3 t2:2"}
        check(range_, {"t1": 5, "t2": 4}, members, **expected, **{other: "t1:4 t2:3"})
        expected = {"c1": "t1:0 t2:1", "c2": "t1:1 t2:2", "c3": "t1:2"}
        check(round_robin, {"t1": 3, "t2": 3}, members, **expected, **{other: "t2:0"})


def test_static_members_keep_theirs_when_their_ids_change() -> None:
    counts = {"t1": 3, "t2": 3}
    for ids in (["c1", "c2", "c3"], ["c4", "c5", "c1"]):
        members = [member(name, "t1 t2", instance_id=f"i{n}") for n, name in enumerate(ids)]
        expected = {name: f"t1:{n} t2:{n}" for n, name in enumerate(ids)}
        check(range_, counts, members, **expected)
        check(round_robin, counts, members, **expected)


# ------------------------------------------------------------------ sticky, equal subscriptions


@STICKY
def test_who_has_the_quota_gets_the_extra_partition(assignor: Assignor) -> None:
    check(
        assignor,
        {"t1": 2, "t2": 3},
        [member("c1", "t1 t2", "t1:0 t2:1"), member("c2", "t1 t2", "t1:1 t2:2")],
        c1="t1:0 t2:1 t2:0",
        c2="t1:1 t2:2",
    )


def test_of_two_with_too_many_one_gives_up_one() -> None:
    members = [
        member("c1", "t1 t2", "t1:0 t2:0"),
        member("c2", "t1 t2", "t1:1 t2:1"),
        member("c3", "t1 t2"),
    ]
    counts = {"t1": 2, "t2": 2}
    check(sticky, counts, members, c1="t1:0", c2="t1:1 t2:1", c3="t2:0")
    check(cooperative_sticky, counts, members, c1="t1:0", c2="t1:1 t2:1", c3="")


@STICKY
def test_all_below_their_quota_keep_what_they_have(assignor: Assignor) -> None:
    check(
        assignor,
        {"t1": 2, "t2": 3},
        [member("c1", "t1 t2", "t1:0"), member("c2", "t1 t2", "t1:1"), member("c3", "t1 t2")],
        c1="t1:0 t2:1",
        c2="t1:1 t2:2",
        c3="t2:0",
    )


@STICKY
def test_members_at_the_quota_are_full_when_no_extras_are_left(assignor: Assignor) -> None:
    check(
        assignor,
        {"t": 4},
        [member("c1", "t", "t:0 t:1"), member("c2", "t", "t:2"), member("c3", "t")],
        c1="t:0 t:1",
        c2="t:2",
        c3="t:3",
    )


def test_a_member_comes_and_the_other_goes() -> None:
    counts = {"t": 3}
    members = [member("c1", "t", "t:0 t:1 t:2"), member("c2", "t")]
    check(sticky, counts, members, c1="t:0 t:1", c2="t:2")
    check(cooperative_sticky, counts, members, c1="t:0 t:1", c2="")
    for assignor in (sticky, cooperative_sticky):
        check(assignor, counts, [member("c2", "t", "t:2")], c2="t:2 t:1 t:0")


def test_two_members_come_and_the_two_others_go() -> None:
    counts = {"t1": 3, "t2": 4}
    members = [
        member("c1", "t1 t2", "t1:0 t1:2 t2:1 t2:3"),
        member("c2", "t1 t2", "t1:1 t2:0 t2:2"),
        member("c3", "t1 t2"),
        member("c4", "t1 t2"),
    ]
    kept = {"c1": "t1:0 t2:1", "c2": "t1:1 t2:0"}
    check(sticky, counts, members, **kept, c3="t1:2 t2:3", c4="t2:2")
    check(cooperative_sticky, counts, members, **kept, c3="", c4="")
    members = [member("c3", "t1 t2", "t1:2 t2:3"), member("c4", "t1 t2", "t2:2")]
    for assignor in (sticky, cooperative_sticky):
        check(assignor, counts, members, c3="t1:2 t2:3 t1:0 t2:1", c4="t2:2 t1:1 t2:0")


def test_each_topic_stays_evenly_shared_when_members_come_and_go() -> None:
    counts = {"t1": 12, "t2": 12}
    members: list[GroupMember] = []
    for names in ("c1", "c1 c2", "c1 c2 c3 c4", "c3 c4"):
        owned = {member.id: member.owned for member in members}
        members = [GroupMember(name, ["t1", "t2"], owned.get(name, ())) for name in names.split()]
        assigned = sticky(counts, members)
        share = 12 // len(members)
        for had in assigned.values():
            assert Counter(partition.topic for partition in had) == {"t1": share, "t2": share}
        members = [GroupMember(name, ["t1", "t2"], had, 1) for name, had in assigned.items()]


@STICKY
def test_topics_come_and_go(assignor: Assignor) -> None:
    members = [member("c1", "t u", "t:0 t:2"), member("c2", "t u", "t:1")]
    check(assignor, {"t": 3, "u": 3}, members, c1="t:0 t:2 u:0", c2="t:1 u:1 u:2")
    members = [member("c1", "u", "t:0 t:2 u:0"), member("c2", "u", "t:1 u:1 u:2")]
    check(assignor, {"u": 3}, members, c1="u:0", c2="u:1 u:2")
    check(assignor, {}, members, c1="", c2="")


@STICKY
def test_partitions_of_topics_that_one_does_not_want_are_not_kept(assignor: Assignor) -> None:
    one = member("c", "t", "t:0 t:1 other:0 other:1")
    check(assignor, {"t": 2}, [one], c="t:0 t:1")


# ------------------------------------------------------------------ generations


@STICKY
@pytest.mark.parametrize("stale", [9, -1])
def test_a_claim_of_an_older_generation_loses(assignor: Assignor, stale: int) -> None:
    claim = "t:0 t:2 u:1"
    check(
        assignor,
        {"t": 3, "u": 3},
        [member("c1", "t u", claim, 10), member("c2", "t u", claim, stale)],
        c1=claim,
        c2="t:1 u:0 u:2",
    )


@STICKY
def test_of_an_older_generation_only_the_contradicted_claims_lose(assignor: Assignor) -> None:
    check(
        assignor,
        {"t": 3, "u": 3},
        [member("c1", "t u", "t:0 u:1 t:1", 10), member("c2", "t u", "t:0 u:1 u:2", 8)],
        c1="t:0 u:1 t:1",
        c2="t:2 u:2 u:0",
    )


@STICKY
def test_each_partition_goes_to_the_highest_generation_that_claims_it(assignor: Assignor) -> None:
    topics = "t u v"
    check(
        assignor,
        {"t": 3, "u": 3, "v": 3},
        [
            member("c1", topics, "t:0 u:0 v:0", 10),
            member("c2", topics, "t:1 u:1 v:1", 9),
            member("c3", topics, "u:1 v:0 v:2", 8),
        ],
        c1="t:0 u:0 v:0",
        c2="t:1 u:1 v:1",
        c3="t:2 u:2 v:2",
    )


@STICKY
def test_members_of_different_generations_keep_what_nobody_contradicts(assignor: Assignor) -> None:
    topics = "t u v w"
    check(
        assignor,
        dict.fromkeys(topics.split(), 3),
        [
            member("c1", topics, "", -1),
            member("c2", topics, "t:0 v:0 u:0", 9),
            member("c3", topics, "w:2 v:2 u:1", 8),
            member("c4", topics, "w:1 t:1 t:2", 7),
        ],
        c1="u:2 v:1 w:0",
        c2="t:0 v:0 u:0",
        c3="w:2 v:2 u:1",
        c4="w:1 t:1 t:2",
    )


def test_what_two_claim_in_one_generation_neither_keeps() -> None:
    members = [member("c1", "t", "t:0 t:1"), member("c2", "t", "t:0 t:2"), member("c3", "t")]
    check(sticky, {"t": 3}, members, c1="t:1", c2="t:2", c3="t:0")
    # Both may still hold it: nobody gets it until they have given it up.
    check(cooperative_sticky, {"t": 3}, members, c1="t:1", c2="t:2", c3="")
    check(cooperative_sticky, {"t": 4}, members, c1="t:1 t:3", c2="t:2", c3="")


@STICKY
@pytest.mark.parametrize(
    "generations", [(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)]
)
def test_three_generations_claim_one_partition(
    assignor: Assignor, generations: tuple[int, int, int]
) -> None:
    claims = ["t:0 t:2", "t:1 t:2 t:3", "t:2 t:4 t:5"]
    members = [
        member(f"c{n}", "t", claim, generation)
        for n, (claim, generation) in enumerate(zip(claims, generations, strict=True))
    ]
    assigned = assignor({"t": 6, "u": 1}, [*members, member("c4", "u", "u:0", 2)])
    handed_out = [partition for owned in assigned.values() for partition in owned]
    assert len(handed_out) == len(set(handed_out))
    assert all(1 <= len(owned) <= 2 for owned in assigned.values())


# ------------------------------------------------------------------ sticky, unequal subscriptions


@STICKY
def test_mixed_subscriptions(assignor: Assignor) -> None:
    check(
        assignor,
        {"t1": 3, "t2": 2},
        [member("c1", "t1"), member("c2", "t1 t2"), member("c3", "t1")],
        c1="t1:0 t1:2",
        c2="t2:0 t2:1",
        c3="t1:1",
    )


@STICKY
def test_where_round_robin_is_uneven_sticky_is_not(assignor: Assignor) -> None:
    few, many = "t1 t3 t5", "t1 t2 t3 t4 t5"
    check(
        assignor,
        {"t1": 2, "t2": 1, "t3": 2, "t4": 1, "t5": 2},
        [member("c1", many), member("c2", few), member("c3", few), member("c4", many)],
        c1="t2:0 t3:0",
        c2="t1:0 t3:1",
        c3="t1:1 t5:0",
        c4="t4:0 t5:1",
    )


UNEQUAL = {"t1": 6, "t2": 7, "t3": 2}
BALANCED = {
    "c0": "t1:5 t2:0 t2:2 t2:4 t2:6",
    "c1": "t1:3 t2:1 t2:3 t2:5 t3:0",
    "c2": "t1:0 t1:1 t1:2 t1:4 t3:1",
}
WANTED = {"c0": "t1 t2 t3", "c1": "t1 t2 t3", "c2": "t1 t3"}


@STICKY
def test_three_topics_of_which_one_member_wants_two(assignor: Assignor) -> None:
    fresh = [member(name, topics) for name, topics in WANTED.items()]
    check(assignor, UNEQUAL, fresh, **BALANCED)
    again = [member(name, topics, BALANCED[name]) for name, topics in WANTED.items()]
    check(assignor, UNEQUAL, again, **BALANCED)


def test_what_a_member_owns_but_no_longer_wants_goes_to_others() -> None:
    owned = {
        "c0": "t1:0 t1:1 t1:2 t1:3 t1:4",
        "c1": "t1:5 t2:0 t2:1 t2:2 t2:3",
        "c2": "t2:4 t2:5 t2:6 t3:0 t3:1",
    }
    first = {"c0": "t1:2 t1:3 t1:4", "c1": "t2:0 t2:1 t2:2 t2:3", "c2": "t3:0 t3:1"}
    then = {
        "c0": "t1:2 t1:3 t1:4 t2:4 t2:5",
        "c1": "t2:0 t2:1 t2:2 t2:3 t2:6",
        "c2": "t1:0 t1:1 t1:5 t3:0 t3:1",
    }
    members = [member(name, topics, owned[name]) for name, topics in WANTED.items()]
    check(cooperative_sticky, UNEQUAL, members, **first)
    members = [member(name, topics, first[name]) for name, topics in WANTED.items()]
    check(cooperative_sticky, UNEQUAL, members, **then)


def test_existing_assignments_move_along_a_chain() -> None:
    members = [
        member("c1", "t1 t2", "t1:0"),
        member("c2", "t1 t2 t3 t4", "t2:0 t3:0"),
        member("c3", "t2 t3 t4 t5 t6", "t4:0 t5:0 t6:0"),
    ]
    assigned = sticky({f"t{n}": 1 for n in range(1, 7)}, members)
    assert sorted(map(len, assigned.values())) in ([1, 2, 3], [2, 2, 2])
    assert assigned["c1"][0] == Partition("t1", 0)


def test_a_former_owner_is_preferred_to_an_emptier_member() -> None:
    # c3 has everything; of what must leave it, t:0 was c2's in the generation before.
    members = [
        member("c1", "t", "", 1),
        member("c2", "t", "t:0", 1),
        member("c3", "t u", "t:0 t:1 t:2 t:3 t:4", 2),
    ]
    assert Partition("t", 0) in sticky({"t": 5, "u": 1}, members)["c2"]
