"""A group as the bytes of one znode, and back.

There are two forms. A group that fits into a znode as plain JSON is stored so, which earlier
versions read, too. A group that does not fit is stored in the compact form, which earlier versions
quarantine: JSON in which every topic stands once and partitions are runs of numbers (``runs.py``),
compressed.
"""

import json
import math
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import Mismatch
from shoal.coordination.group.messages import Join
from shoal.coordination.group.model import GroupMetadata, MemberState
from shoal.coordination.group.runs import PartitionNumbers, TopicLists
from shoal.coordination.group.states import GroupState
from shoal.core.untrusted import read_json

# Another format needs another place, too: members that cannot read what they find quarantine it
# and begin the group anew (store.py).
FORMAT = 1
COMPACT = 2  # the format inside the compact form
MOST_PARTITIONS = 100_000  # that all members together ask for: assigning costs time for each
LARGEST = 2**53  # of a number: greater ones are not exact in every JSON
MOST_JSON = 1 << 25  # bytes of the compact form once it is decompressed
# What the runs of the compact form need at most, in bytes, of a set of partitions in each state:
# measured with owners drawn at random, which compress worst.
PARTITION_BYTES = 3
MEMBER_BYTES = 16
LEAST_PAIR = len('["",0],')  # bytes of a partition in the plain form

T = TypeVar("T")


def encode(group: GroupMetadata, limit: int | None = None) -> bytes:
    """Return the plain form, or the compact one if the plain has more than ``limit`` bytes.

    The order of the members is kept: it is the order in which they came.
    """
    named = sum(map(len, group.assignment.values()))
    if limit is not None and LEAST_PAIR * named > limit:
        return _compact(group)
    plain = _json({"format": FORMAT, **_document(group, dict, _pairs)})
    return plain if limit is None or len(plain) <= limit else _compact(group)


def most_partitions(group: GroupMetadata, limit: int) -> int:
    """Return how many partitions may be shared by the members of ``group``, of all topics.

    With them it has ``limit`` bytes at most, whatever is assigned and owned.
    """
    members = {
        member_id: replace(member, join=replace(member.join, owned=()))
        for member_id, member in group.members.items()
    }
    bare = replace(group, members=members, assignment=dict.fromkeys(members, ()))
    left = limit - len(_compact(bare)) - 2 * MEMBER_BYTES * len(members)
    return max(0, min(MOST_PARTITIONS, left // (2 * PARTITION_BYTES)))


def _compact(group: GroupMetadata) -> bytes:
    counts = group.partition_counts
    owned = [member.join.owned for member in group.members.values()]
    for partitions in (*group.assignment.values(), *owned):
        for topic, index in partitions:  # perhaps of a topic that members no longer want
            counts[topic] = max(index + 1, counts.get(topic, 0))
    counts = dict(sorted(counts.items()))
    numbers = PartitionNumbers(counts)
    lists = TopicLists(numbers.topics)
    document = _document(group, lists.number, numbers.runs)
    return zlib.compress(
        _json({"format": COMPACT, "topics": counts, "lists": lists.lists, **document})
    )


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _document(
    group: GroupMetadata,
    topics: Callable[[Mapping[str, int]], Any],
    partitions: Callable[[Collection[Partition]], Any],
) -> dict[str, Any]:
    return {
        "state": group.state,
        "generation": group.generation,
        "assignor": group.assignor,
        "leader": group.leader_id,
        "members": [_encode_member(each, topics, partitions) for each in group.members.values()],
        "pending": sorted(group.pending),
        "assignment": {key: partitions(value) for key, value in group.assignment.items()},
        "deadline_s": group.deadline_s,
        "gather_until_s": group.gather_until_s,
        "has_newcomers": group.has_newcomers,
    }


def decode(data: bytes, name: str, initial_rebalance_delay_s: float) -> GroupMetadata:
    """Return the group; nothing at all is a group that has never had members.

    ``name`` and ``initial_rebalance_delay_s`` are the reader's own and not stored. Raises
    Mismatch for what another version of this program wrote, or something else.
    """
    if not data:
        return GroupMetadata(name, initial_rebalance_delay_s)
    try:
        is_compact = data.startswith(_COMPRESSED)
        # Not strict: members of an earlier version may have topics with lone surrogates.
        stored = read_json(_decompress(data) if is_compact else data, most=MOST_JSON)
        if stored["format"] == (COMPACT if is_compact else FORMAT):
            topics, partitions = _compact_readers(stored) if is_compact else (_counts, _partitions)
            return _decode(stored, name, initial_rebalance_delay_s, topics, partitions)
        found = f"format {str(stored['format'])[:80]}"
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, zlib.error) as error:
        found = f"something unreadable ({str(error)[:200]!r})"
    raise Mismatch(
        f"the znode of group {name!r} holds {found}, and this program reads format {FORMAT} and, "
        f"compressed, {COMPACT}; its members quarantine that and begin the group anew"
    )


def _encode_member(
    member: MemberState,
    topics: Callable[[Mapping[str, int]], Any],
    partitions: Callable[[Collection[Partition]], Any],
) -> dict[str, Any]:
    join = member.join
    return {
        "id": member.id,
        "client": join.client_id,
        "instance": join.instance_id,
        "assignors": list(join.assignors),
        "topics": topics(join.topics),
        "rebalance_timeout_s": join.rebalance_timeout_s,
        "owned": partitions(join.owned),
        "generation": join.generation,
        "is_joining": member.is_joining,
        "is_syncing": member.is_syncing,
        "has_synced": member.has_synced,
    }


def _pairs(partitions: Collection[Partition]) -> list[tuple[str, int]]:
    return [(partition.topic, partition.index) for partition in partitions]


_COMPRESSED = b"x"  # the first byte of what zlib compresses; JSON has another one


def _decompress(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    text = decompressor.decompress(data, MOST_JSON)
    if not decompressor.eof:
        raise ValueError("it is cut off, or has too many bytes once decompressed")
    return text


ReadCounts = Callable[[Any], Mapping[str, int]]
ReadPartitions = Callable[[Any], tuple[Partition, ...]]


def _compact_readers(stored: Any) -> tuple[ReadCounts, ReadPartitions]:
    """Return what reads a member's topics and a set of partitions in the compact form."""
    numbers = PartitionNumbers(_counts(stored["topics"]))
    lists: list[dict[str, int]] = []
    for each in _list(stored["lists"]):
        values = list(map(_count, _list(each)))
        pairs = zip(values[::2], values[1::2], strict=True)
        lists.append({numbers.topics[place]: count for place, count in pairs})
    return (
        lambda number: lists[_count(number)],
        lambda runs: numbers.partitions(list(map(_count, _list(runs)))),
    )


def _decode(
    stored: Any,
    name: str,
    initial_rebalance_delay_s: float,
    topics: ReadCounts,
    partitions: ReadPartitions,
) -> GroupMetadata:
    members = [_decode_member(each, topics, partitions) for each in _list(stored["members"])]
    assignment = _dict(stored["assignment"])
    group = GroupMetadata(
        name,
        initial_rebalance_delay_s,
        state=GroupState(_text(stored["state"])),
        generation=_count(stored["generation"]),
        assignor=_text(stored["assignor"]),
        leader_id=_optional(_text, stored["leader"]),
        members={member.id: member for member in members},
        pending=frozenset(map(_text, _list(stored["pending"]))),
        assignment={_text(key): partitions(value) for key, value in assignment.items()},
        deadline_s=_optional(_number, stored["deadline_s"]),
        gather_until_s=_optional(_number, stored["gather_until_s"]),
        has_newcomers=_flag(stored["has_newcomers"]),
    )
    asked_for = sum(sum(member.join.topics.values()) for member in members)
    if asked_for > MOST_PARTITIONS * max(1, len(members)):
        raise ValueError(f"its members ask for {asked_for} partitions")
    return group


def _decode_member(stored: Any, topics: ReadCounts, partitions: ReadPartitions) -> MemberState:
    member_id = _text(stored["id"])
    assignors = tuple(map(_text, _list(stored["assignors"])))
    if not member_id or not assignors:
        raise ValueError("a member has no id or no assignor")
    join = Join(
        member_id=member_id,
        fresh_id=member_id,
        assignors=assignors,
        topics=topics(stored["topics"]),
        rebalance_timeout_s=_number(stored["rebalance_timeout_s"]),
        instance_id=_optional(_text, stored["instance"]),
        owned=partitions(stored["owned"]),
        generation=_whole(stored["generation"]),
        client_id=_text(stored["client"]),
    )
    flags = (_flag(stored[name]) for name in ("is_joining", "is_syncing", "has_synced"))
    return MemberState(member_id, join, *flags)


def _counts(value: Any) -> dict[str, int]:
    return {_text(topic): _count(number) for topic, number in _dict(value).items()}


def _partitions(pairs: Any) -> tuple[Partition, ...]:
    return tuple(
        Partition(_text(topic), _count(index)) for topic, index in map(_list, _list(pairs))
    )


def _is(kind: type[T], value: Any) -> T:
    if type(value) is not kind:
        raise TypeError(f"{str(value)[:40]!r} is not of type {kind.__name__}")
    found: T = value
    return found


def _text(value: Any) -> str:
    return _is(str, value)


def _flag(value: Any) -> bool:
    return _is(bool, value)


def _list(value: Any) -> list[Any]:
    return _is(list, value)


def _dict(value: Any) -> dict[str, Any]:
    return _is(dict, value)


def _whole(value: Any) -> int:
    if abs(number := _is(int, value)) > LARGEST:
        raise ValueError("a number is too great")
    return number


def _count(value: Any) -> int:
    if (number := _whole(value)) < 0:
        raise ValueError(f"{number} is less than nothing")
    return number


def _number(value: Any) -> float:
    number = float(_whole(value)) if type(value) is int else _is(float, value)
    if not math.isfinite(number) or abs(number) > LARGEST:
        raise ValueError("a number is too great")
    return number


def _optional(read: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else read(value)
