"""Groups that share partitions: Kafka's group protocol on ZooKeeper.

``Group`` is what to use: ``async with Group(session, name, topics=…, listener=…)``. Below it is a
pure core with joins, elections, generations, votes, sync and eviction:

``decide(group, request, now_s) -> Decision(group, answers)`` holds every rule of the coordinator.
It does no IO and reads no clock; its caller stores the group before sending the answers.

- ``states``: what a group can be in, as one table.
- ``messages``: requests of members, and the answers.
- ``model``: ``GroupMetadata``, all that a coordinator remembers. ``coordinator``: ``decide``.
- ``codec``: a group as the bytes of a znode. It is written on condition that the znode's version
  is still the one that was read.
- ``participant``: the member's side, just as pure: what to give up, take on and ask for.

And around it what does IO: ``store`` (the znodes, the ensemble's clock), ``listener`` (the
user's callbacks), ``membership`` (one of them) and ``group`` (one membership after the other).

The rules are those of Apache Kafka's classic protocol with static members (KIP-345) and required
member ids (KIP-394). A member's session stands for its heartbeat: ``Leave`` is sent for it when
the session ends.
"""

from shoal.coordination.group.coordinator import decide
from shoal.coordination.group.group import Group
from shoal.coordination.group.listener import GroupListener
from shoal.coordination.group.messages import (
    Alive,
    Answer,
    Assigned,
    DeleteGroup,
    Heartbeat,
    Join,
    Joined,
    Leave,
    RefusedRequest,
    Request,
    Sync,
    Tick,
)
from shoal.coordination.group.model import GroupDecision, GroupMetadata, MemberState
from shoal.coordination.group.participant import Participant, ParticipantStep
from shoal.coordination.group.settings import GroupSettings
from shoal.coordination.group.states import GroupSignal, GroupState
from shoal.coordination.group.store import delete_group, read_group

__all__ = [
    "Alive",
    "Answer",
    "Assigned",
    "DeleteGroup",
    "Group",
    "GroupDecision",
    "GroupListener",
    "GroupMetadata",
    "GroupSettings",
    "GroupSignal",
    "GroupState",
    "Heartbeat",
    "Join",
    "Joined",
    "Leave",
    "MemberState",
    "Participant",
    "ParticipantStep",
    "RefusedRequest",
    "Request",
    "Sync",
    "Tick",
    "decide",
    "delete_group",
    "read_group",
]
