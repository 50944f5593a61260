"""The state machine of a group as data. State changes nowhere else."""

from collections.abc import Mapping
from enum import StrEnum

from shoal.coordination.errors import IllegalGroupTransition


class GroupState(StrEnum):
    """State of a group, with Kafka's names."""

    EMPTY = "Empty"  # no members
    PREPARING_REBALANCE = "PreparingRebalance"  # waits for all members to join again
    COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
    STABLE = "Stable"  # every member can know its partitions
    DEAD = "Dead"  # deleted; final


class GroupSignal(StrEnum):
    """What can happen to a group."""

    CHANGE = "CHANGE"  # a member came, went, or changed its subscription
    GATHER = "GATHER"  # all have joined, or the others have been evicted
    DESERT = "DESERT"  # when it was time to gather no member was left
    ASSIGN = "ASSIGN"  # the leader's assignment arrived
    DELETE = "DELETE"  # request


S, E = GroupState, GroupSignal
TRANSITIONS: Mapping[tuple[GroupState, GroupSignal], GroupState] = {
    (S.EMPTY, E.CHANGE): S.PREPARING_REBALANCE,
    (S.EMPTY, E.DELETE): S.DEAD,
    (S.PREPARING_REBALANCE, E.GATHER): S.COMPLETING_REBALANCE,
    (S.PREPARING_REBALANCE, E.DESERT): S.EMPTY,
    (S.PREPARING_REBALANCE, E.DELETE): S.DEAD,
    (S.COMPLETING_REBALANCE, E.ASSIGN): S.STABLE,
    (S.COMPLETING_REBALANCE, E.CHANGE): S.PREPARING_REBALANCE,
    (S.COMPLETING_REBALANCE, E.DELETE): S.DEAD,
    (S.STABLE, E.CHANGE): S.PREPARING_REBALANCE,
    (S.STABLE, E.DELETE): S.DEAD,
}


def next_state(state: GroupState, signal: GroupSignal) -> GroupState:
    """Return the state after ``signal``. Raises IllegalGroupTransition if no row matches."""
    try:
        return TRANSITIONS[state, signal]
    except KeyError:
        raise IllegalGroupTransition(state, signal) from None
