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
- ``instance_claim``: which members of its ``instance_id`` a process may replace.
- ``participant``: the member's side, just as pure: what to give up, take on and ask for.

And around it what does IO: ``store`` (the znodes, the ensemble's clock), ``listener`` (the
user's callbacks), ``membership`` (one of them) and ``group`` (one membership after the other).

The rules are those of Apache Kafka's classic protocol with static members (KIP-345) and required
member ids (KIP-394). A member's session stands for its heartbeat: ``Leave`` is sent for it when
the session ends. No process coordinates: every member decides its own request on the group that it
has read, writes the result if the group's version is still the same, and reads again otherwise.
Members that share a session also share each reading, and their requests on it are decided one after
the other and written as one (``store``). So a rebalance costs each session a few requests, however
many members it has.

The group has the states of Kafka (``states`` has the table of transitions):

===================  ==============================================================================
Empty                no members
PreparingRebalance   members join again; the generation rises when all known members have joined,
                     or when the rebalance timeout has evicted the others
CompletingRebalance  the leader computes the assignment; the others wait for it
Stable               every member can read its partitions
Dead                 deleted (``delete_group``); final
===================  ==============================================================================

A membership, as its process sees it. Each one has an id that is never used again:

========  =========================================================================================
joining   the member's node exists and its request is stored; it holds nothing
member    ``on_assigned`` and ``on_revoked`` follow the assignment, one call at a time
expelled  the group continues without the member: ``on_lost``, then a new membership
in doubt  the session cannot be proven: ``on_lost``, then a new membership once it can
failed    an error that repetition cannot cure: entering, ``poll`` and ``wait`` raise it
========  =========================================================================================

- **A member dies**: its node ends with its session. Any other member removes it, and the group
  rebalances. A static member keeps its place for ``static_grace_s``.
- **The leader dies**: the next leader computes the assignment; nothing else depends on it.
- **A member is slow**: after ``rebalance_timeout_s`` any member evicts it. A callback gets 0.9 of
  that time and is cancelled then.
- **A write's answer is lost**: the member reads the group again. Requests can be repeated.
- **A member is paused or cut off**: it stops after 0.7 of its session timeout. After a longer pause
  it may consider itself the owner until it notices: work that must never overlap needs an epoch
  (``recipes``).
- **Two processes with one ``instance_id``**: the younger one fences the older one, which ends with
  FencedInstanceId, also if it was cut off and comes back later (``instance_claim``).
- **The clocks of members differ**: deadlines run on the ensemble's clock (``store``). Only servers
  whose clocks differ, with a change of leader in the middle of a rebalance, move a deadline.
- **The group's node is overwritten or deleted**: it is quarantined and written again, and members
  join in a higher generation.
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
