"""A group as the bytes of one znode, and back."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import Mismatch
from shoal.coordination.group.messages import Join
from shoal.coordination.group.model import GroupMetadata, MemberState
from shoal.coordination.group.states import GroupState

FORMAT = 1  # raised when older programs could not go on from what is written


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
        stored = json.loads(data)
        if stored["format"] == FORMAT:
            return _decode(stored, name, initial_rebalance_delay_s)
        found = f"format {stored['format']}"
    except (ValueError, KeyError, TypeError) as error:
        found = f"something unreadable ({error!r})"
    raise Mismatch(
        f"the znode of group {name!r} holds {found}, and this program reads format {FORMAT}; "
        "run the same version everywhere, or choose another name for the group"
    )


def _decode(stored: dict[str, Any], name: str, initial_rebalance_delay_s: float) -> GroupMetadata:
    members = [_decode_member(member) for member in stored["members"]]
    return GroupMetadata(
        name,
        initial_rebalance_delay_s,
        state=GroupState(stored["state"]),
        generation=stored["generation"],
        assignor=stored["assignor"],
        leader_id=stored["leader"],
        members={member.id: member for member in members},
        pending=frozenset(stored["pending"]),
        assignment={key: _partitions(value) for key, value in stored["assignment"].items()},
        deadline_s=stored["deadline_s"],
        gather_until_s=stored["gather_until_s"],
        has_newcomers=stored["has_newcomers"],
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


def _decode_member(stored: dict[str, Any]) -> MemberState:
    join = Join(
        member_id=stored["id"],
        fresh_id=stored["id"],
        assignors=tuple(stored["assignors"]),
        topics=stored["topics"],
        rebalance_timeout_s=stored["rebalance_timeout_s"],
        instance_id=stored["instance"],
        owned=_partitions(stored["owned"]),
        generation=stored["generation"],
        client_id=stored["client"],
    )
    return MemberState(
        stored["id"], join, stored["is_joining"], stored["is_syncing"], stored["has_synced"]
    )


def _pairs(partitions: Iterable[Partition]) -> list[tuple[str, int]]:
    return [(partition.topic, partition.index) for partition in partitions]


def _partitions(pairs: Iterable[Sequence[Any]]) -> tuple[Partition, ...]:
    return tuple(Partition(topic, index) for topic, index in pairs)
