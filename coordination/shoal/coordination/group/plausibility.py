"""Whether a coordinator can have written what is stored of a group.

``decode`` refuses what is not a group at all. Here it is about documents that are well formed, but
would let the members fail, or wait for what never comes.
"""

from collections.abc import Set

from shoal.coordination.group.model import GroupMetadata
from shoal.coordination.group.states import GroupState

# Deadlines are of the ensemble's clock, of which servers may have different ones.
CLOCKS_APART_S = 300.0
GHOSTS = 100  # most members without a session, which may have died at once


def implausible(group: GroupMetadata, now_s: float, registered: Set[str]) -> str | None:
    """Return what no coordinator can have written, None if all is well.

    ``now_s`` is the ensemble's time, ``registered`` are the members with a live session.
    """
    members, state = group.members, group.state
    if state is GroupState.DEAD:
        return "a group that is deleted leaves nothing behind"
    if state is GroupState.EMPTY:
        return "an empty group has members" if members else None
    # Without members (all have left, and one is about to join) the deadline makes no difference.
    if (
        members
        and group.deadline_s is not None
        and group.deadline_s
        > now_s + _longest_s(group, registered) + group.initial_rebalance_delay_s + CLOCKS_APART_S
    ):
        return "it would wait for a time that is far away"
    if state is GroupState.PREPARING_REBALANCE:
        return "it waits for members, and for no time" if group.deadline_s is None else None
    if not members or group.leader_id not in members:
        return "it has no leader"
    unsupported = [m.id for m in members.values() if group.assignor not in m.join.assignors]
    if unsupported:
        return f"its assignor is not one of member {unsupported[0]}"
    if state is GroupState.COMPLETING_REBALANCE and group.deadline_s is None:
        return "it waits for an assignment, and for no time"
    return _wrongly_assigned(group) or _haunted(group, registered)


def _longest_s(group: GroupMetadata, registered: Set[str]) -> float:
    """Return the longest time that a member asks for; of those that live, if any does."""
    asked = {m.id: m.join.rebalance_timeout_s for m in group.members.values()}
    living = [asked_s for member_id, asked_s in asked.items() if member_id in registered]
    return max(living or asked.values(), default=0.0)


def _wrongly_assigned(group: GroupMetadata) -> str | None:
    given = [partition for each in group.assignment.values() for partition in each]
    if len(set(given)) < len(given):
        return "it gives a partition to two members"
    return None


def _haunted(group: GroupMetadata, registered: Set[str]) -> str | None:
    # Static members are not ghosts: however many of them restart, each keeps its place meanwhile.
    dynamic = [m.id for m in group.members.values() if m.join.instance_id is None]
    ghosts = sum(1 for member_id in (*dynamic, *group.pending) if member_id not in registered)
    if ghosts > GHOSTS + len(registered):
        return f"{ghosts} of its members have no session"
    return None
