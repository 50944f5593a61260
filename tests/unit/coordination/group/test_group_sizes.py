"""The sizes of stored groups: what fits, what is said of the rest, and the table of the docs."""

import random
import re
import zlib
from bisect import bisect_left
from dataclasses import replace
from pathlib import Path

import pytest

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import Mismatch
from shoal.coordination.group import GroupMetadata, GroupState, Join, MemberState
from shoal.coordination.group.codec import decode, encode, most_partitions
from shoal.coordination.session.session import NODE_BYTES
from shoal.coordination.session.wire import MAX_REQUEST_BYTES

LIMIT = MAX_REQUEST_BYTES - NODE_BYTES
SIZES = [
    (10, 1_000),
    (10, 100_000),
    (100, 10_000),
    (1_000, 10_000),
    (1_000, 100_000),
    (10_000, 20_000),
]
PAGE = Path(__file__).parents[4] / "docs" / "coordination.md"


def group_of(members: int, partitions: int, topics: int = 1) -> GroupMetadata:
    """Return a group in which every partition moves from one random member to another.

    That compresses worst: runs of partitions are short, and what is owned is not what is assigned.
    """
    drawn = random.Random(1)
    ids = [f"member-{drawn.getrandbits(128):032x}" for _ in range(members)]
    counts = {f"topic-{n}": partitions // topics for n in range(topics)}
    every = [Partition(topic, index) for topic in counts for index in range(counts[topic])]

    def dealt() -> dict[str, tuple[Partition, ...]]:
        owner = [drawn.choice(ids) for _ in every]
        held: dict[str, list[Partition]] = {member_id: [] for member_id in ids}
        for partition, member_id in zip(every, owner, strict=True):
            held[member_id].append(partition)
        return {member_id: tuple(sorted(held[member_id])) for member_id in ids}

    owned = dealt()
    joins = {
        member_id: Join(
            member_id, member_id, ("cooperative-sticky",), counts, 60.0, None,
            owned[member_id], 7, "member",
        )
        for member_id in ids
    }  # fmt: skip
    return GroupMetadata(
        "g",
        state=GroupState.STABLE,
        generation=8,
        assignor="cooperative-sticky",
        leader_id=ids[0],
        members={key: MemberState(key, join, has_synced=True) for key, join in joins.items()},
        assignment=dealt(),
    )


def sizes(members: int, partitions: int) -> tuple[int, int, int]:
    """Return the bytes of the plain and of the compact form, and how many partitions fit."""
    group = group_of(members, partitions)
    return len(encode(group)), len(encode(group, 0)), most_partitions(group, LIMIT)


def test_the_table_of_the_documentation_is_true() -> None:
    """Up to 5%: compressors differ a little."""
    table = PAGE.read_text().partition("### How large a group is")[2].partition("\n#")[0]
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| (.*) \|$", table, re.MULTILINE)
    numbers = {
        (_number(members), _number(partitions)): tuple(map(_number, found.split(" | ")))
        for members, partitions, found in rows
    }
    assert list(numbers) == SIZES
    for (members, partitions), found in numbers.items():
        assert found == pytest.approx(sizes(members, partitions), rel=0.05)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def test_a_hundred_thousand_partitions_of_a_thousand_members_fit() -> None:
    group = group_of(1_000, 100_000)
    assert len(encode(group)) > LIMIT  # as plain JSON they do not
    stored = encode(group, LIMIT)
    assert len(stored) <= LIMIT
    assert decode(stored, "g", 3.0) == group
    assert most_partitions(group, LIMIT) == 100_000


@pytest.mark.parametrize(("members", "partitions"), SIZES)
def test_what_is_admitted_fits(members: int, partitions: int) -> None:
    """With exactly so many bytes as make that number of partitions possible."""
    group = group_of(members, partitions)
    limit = bisect_left(range(LIMIT), partitions, key=lambda n: most_partitions(group, n))
    assert len(encode(group, limit)) <= limit


def test_a_group_that_fits_is_stored_as_earlier_versions_read_it() -> None:
    group = group_of(10, 1_000)
    assert encode(group, LIMIT) == encode(group)
    assert encode(group, LIMIT).startswith(b'{"format":1,')


def test_many_topics_and_claims_to_forgotten_ones_survive() -> None:
    group = group_of(20, 300, topics=30)
    first, *others = group.members.values()
    join = replace(first.join, owned=(Partition("gone", 7), Partition("topic-1", 99)))
    other = replace(others[0].join, topics={"a": 0, "topic-3": 2, "z": 0})
    members = {
        **group.members,
        first.id: replace(first, join=join),
        others[0].id: replace(others[0], join=other),
    }
    group = replace(group, members=members)
    assert decode(encode(group, 0), "g", 3.0) == group


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"lists":[[0,2]]', b'"lists":[[1,2]]'),
        (b'"lists":[[0,2]]', b'"lists":[[0]]'),
        (b'"lists":[[0,2]]', b'"lists":[]'),
        (b'"topics":{"t":2}', b'"topics":{"t":-2}'),
        (b'"owned":[0,2]', b'"owned":[0,3]'),
        (b'"owned":[0,2]', b'"owned":[-1,2]'),
        (b'"owned":[0,2]', b'"owned":[0,2,0]'),
        (b'"owned":[0,2]', b'"owned":[["t",0]]'),
        (b'"format":2', b'"format":1'),
    ],
)
def test_a_damaged_compact_group_is_refused(old: bytes, new: bytes) -> None:
    owned = (Partition("t", 0), Partition("t", 1))
    join = Join("m", "m", ("sticky",), {"t": 2}, 60.0, None, owned, 1)
    group = GroupMetadata("g", members={"m": MemberState("m", join)})
    plain = zlib.decompress(encode(group, 0))
    assert old in plain
    decode(zlib.compress(plain), "g", 3.0)
    with pytest.raises(Mismatch, match="group 'g'"):
        decode(zlib.compress(plain.replace(old, new)), "g", 3.0)


def test_runs_that_would_fill_the_memory_are_refused() -> None:
    join = Join("m", "m", ("sticky",), {"t": 2}, 60.0, None, (Partition("t", 0),), 1)
    group = GroupMetadata("g", members={"m": MemberState("m", join)})
    plain = zlib.decompress(encode(group, 0)).replace(
        b'"topics":{"t":2}', b'"topics":{"t":%d}' % 10**12
    )
    for damaged in (
        zlib.compress(plain.replace(b'"owned":[0,1]', b'"owned":[0,%d]' % 10**11)),
        zlib.compress(b" " * 2**26 + plain),
        zlib.compress(plain)[:-9],
        b"x" * 1000,
    ):
        with pytest.raises(Mismatch):
            decode(damaged, "g", 3.0)
