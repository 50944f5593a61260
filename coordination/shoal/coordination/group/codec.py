"""A group as the bytes of one znode, and back."""

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import Mismatch
from shoal.coordination.group.messages import Join
from shoal.coordination.group.model import GroupMetadata, MemberState
from shoal.coordination.group.states import GroupState
from shoal.coordination.session.documents import read_json

# Another format needs another place, too: members that cannot read what they find quarantine it
# and begin the group anew (store.py).
FORMAT = 1
MOST_PARTITIONS = 100_000  # that all members together ask for: assigning costs time for each
LARGEST = 2**53  # of a number: greater ones are not exact in every JSON

T = TypeVar("T")


def encode(group: GroupMetadata) -> bytes:
    """Return JSON. The order of the members is kept: it is the order in which they came."""
    return json.dumps(
        {
            "format": FORMAT,
            "state": group.state,
            "generation": group.generation,
            "assignor": group.assignor,
            "leader": group.leader_id,
            "members": [_encode_member(member) for member in group.members.values()],
            "pending": sorted(group.pending),
            "assignment": {key: _pairs(value) for key, value in group.assignment.items()},
            "deadline_s": group.deadline_s,
            "gather_until_s": group.gather_until_s,
            "has_newcomers": group.has_newcomers,
        },
        separators=(",", ":"),
    ).encode()


def decode(data: bytes, name: str, initial_rebalance_delay_s: float) -> GroupMetadata:
    """Return the group; nothing at all is a group that has never had members.

    ``name`` and ``initial_rebalance_delay_s`` are the reader's own and not stored. Raises
    Mismatch for what another version of this program wrote, or something else.
    """
    if not data:
        return GroupMetadata(name, initial_rebalance_delay_s)
    try:
        stored = read_json(data)
        if stored["format"] == FORMAT:
            return _decode(stored, name, initial_rebalance_delay_s)
        found = f"format {str(stored['format'])[:80]}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"something unreadable ({str(error)[:200]!r})"
    raise Mismatch(
        f"the znode of group {name!r} holds {found}, and this program reads format {FORMAT}; "
        "its members quarantine that and begin the group anew"
    )


def _encode_member(member: MemberState) -> dict[str, Any]:
    join = member.join
    return {
        "id": member.id,
        "client": join.client_id,
        "instance": join.instance_id,
        "assignors": list(join.assignors),
        "topics": dict(join.topics),
        "rebalance_timeout_s": join.rebalance_timeout_s,
        "owned": _pairs(join.owned),
        "generation": join.generation,
        "is_joining": member.is_joining,
        "is_syncing": member.is_syncing,
        "has_synced": member.has_synced,
    }


def _pairs(partitions: Iterable[Partition]) -> list[tuple[str, int]]:
    return [(partition.topic, partition.index) for partition in partitions]


def _decode(stored: Any, name: str, initial_rebalance_delay_s: float) -> GroupMetadata:
    members = [_decode_member(member) for member in _list(stored["members"])]
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
        assignment={_text(key): _partitions(value) for key, value in assignment.items()},
        deadline_s=_optional(_number, stored["deadline_s"]),
        gather_until_s=_optional(_number, stored["gather_until_s"]),
        has_newcomers=_flag(stored["has_newcomers"]),
    )
    asked_for = sum(sum(member.join.topics.values()) for member in members)
    if asked_for > MOST_PARTITIONS * max(1, len(members)):
        raise ValueError(f"its members ask for {asked_for} partitions")
    return group


def _decode_member(stored: Any) -> MemberState:
    member_id = _text(stored["id"])
    topics = {_text(topic): _count(number) for topic, number in _dict(stored["topics"]).items()}
    assignors = tuple(map(_text, _list(stored["assignors"])))
    if not member_id or not assignors:
        raise ValueError("a member has no id or no assignor")
    join = Join(
        member_id=member_id,
        fresh_id=member_id,
        assignors=assignors,
        topics=topics,
        rebalance_timeout_s=_number(stored["rebalance_timeout_s"]),
        instance_id=_optional(_text, stored["instance"]),
        owned=_partitions(stored["owned"]),
        generation=_whole(stored["generation"]),
        client_id=_text(stored["client"]),
    )
    flags = (_flag(stored[name]) for name in ("is_joining", "is_syncing", "has_synced"))
    return MemberState(member_id, join, *flags)


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
