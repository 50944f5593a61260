"""Who should own what: the same for all who know the same members, even, and with few moves."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from shoal.core.assign import LOAD_BOUND, rendezvous

members = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12, unique=True)
partitions = st.sampled_from([1, 2, 16, 128])


@given(partitions, members)
def test_every_partition_has_exactly_one_owner(count: int, names: list[str]) -> None:
    assigned = rendezvous(count, names)
    assert sorted(p for owned in assigned.values() for p in owned) == list(range(count))
    assert assigned.keys() == set(names)
    assert all(owned == sorted(owned) for owned in assigned.values())


@given(partitions, members, st.randoms(use_true_random=False))
def test_order_and_repetition_of_members_do_not_matter(
    count: int, names: list[str], rng: random.Random
) -> None:
    shuffled = [*names, names[0]]
    rng.shuffle(shuffled)
    assert rendezvous(count, shuffled) == rendezvous(count, names)


@given(partitions, members)
def test_nobody_gets_more_than_the_bound(count: int, names: list[str]) -> None:
    most = math.ceil(count / len(names) * LOAD_BOUND)
    assert max(map(len, rendezvous(count, names).values())) <= most


@given(members.filter(lambda names: len(names) > 1), st.data())
def test_few_partitions_move_besides_those_of_the_one_that_leaves(
    names: list[str], data: st.DataObject
) -> None:
    leaving = data.draw(st.sampled_from(names))
    before = _owners(rendezvous(128, names))
    after = _owners(rendezvous(128, [name for name in names if name != leaving]))
    kept = [p for p, name in before.items() if name != leaving]
    assert sum(before[p] != after[p] for p in kept) <= 16  # one in eight; mostly one or two


def test_nobody_there_owns_nothing() -> None:
    assert rendezvous(128, []) == {}


def test_assignment_is_the_same_in_every_version() -> None:
    # Members of different versions must agree during a rolling upgrade.
    assert rendezvous(12, ["a", "b", "c"]) == {
        "a": [1, 3, 7, 8, 11],
        "b": [0, 2, 4, 10],
        "c": [5, 6, 9],
    }


def _owners(assigned: dict[str, list[int]]) -> dict[int, str]:
    return {partition: name for name, owned in assigned.items() for partition in owned}
