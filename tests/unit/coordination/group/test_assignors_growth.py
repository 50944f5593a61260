"""The steps of an assignor grow with members plus partitions, not with their product."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

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

SMALL, LARGE = 40, 160  # members
TOPICS = [f"topic-{number}" for number in range(10)]
Owned = Mapping[str, Sequence[Partition]]


def steps(call: Callable[[], Any]) -> int:
    """Return how many calls of Python and of C ``call`` makes."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


def group(count: int, owned: Owned, *, equal: bool) -> tuple[dict[str, int], list[GroupMember]]:
    """Return ``count`` members and ten partitions for each of them, in ten topics.

    Unless they are ``equal``, each member leaves out some topics.
    """
    members = [
        GroupMember(
            f"m{number:04d}",
            tuple(each for n, each in enumerate(TOPICS) if equal or (number + n) % 3),
            tuple(owned.get(f"m{number:04d}", ())),
            1,
        )
        for number in range(count)
    ]
    return dict.fromkeys(TOPICS, count), members


def nothing(_count: int, *, equal: bool) -> Owned:
    return {}


def settled(count: int, *, equal: bool) -> Owned:
    return sticky(*group(count, {}, equal=equal))


def heaped(count: int, *, equal: bool) -> Owned:
    """One member has all that it wants."""
    counts, members = group(count, {}, equal=equal)
    wanted = [Partition(topic, n) for topic in members[0].topics for n in range(counts[topic])]
    return {members[0].id: wanted}


@pytest.mark.parametrize("assign", [range_, round_robin, modulo, sticky, cooperative_sticky])
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("owned", [nothing, settled, heaped])
@pytest.mark.parametrize("coming", [0, 1, -0.2])
def test_steps_grow_with_members_plus_partitions(
    assign: Assignor, equal: bool, owned: Callable[..., Owned], coming: float
) -> None:
    def cost(count: int) -> int:
        now = count + (coming if coming >= 0 else coming * count)
        counts, members = group(int(now), owned(count, equal=equal), equal=equal)
        return steps(lambda: assign(counts, members))

    assert cost(LARGE) < 1.5 * cost(SMALL) * LARGE / SMALL
