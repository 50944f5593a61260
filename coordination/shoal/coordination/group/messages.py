"""What members ask of their group's coordinator, and its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shoal.coordination.assignors import GroupMember, Partition
from shoal.coordination.assignors.member import NO_GENERATION
from shoal.coordination.errors import GroupError


@dataclass(frozen=True, slots=True)
class Join:
    """Ask to become a member, or to join again because the group rebalances.

    ``member_id`` is None from a member that has none yet; ``fresh_id`` is the id to give it, chosen
    by the receiver of the request. ``assignors`` are names, the preferred one first.
    ``topics`` are those it subscribes to, with the number of partitions that it knows of each.
    ``owned`` and ``generation`` are for the assignor (see ``assignors.GroupMember``).
    ``replaceable`` are the members whose place a static member without an id may take; None: any,
    as for a process that enters for the first time.
    """

    member_id: str | None
    fresh_id: str
    assignors: Sequence[str]
    topics: Mapping[str, int]
    rebalance_timeout_s: float
    instance_id: str | None = None
    owned: Sequence[Partition] = ()
    generation: int = NO_GENERATION
    client_id: str = ""  # a name for people; its id changes with every life, this does not
    replaceable: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """Ask for the member's partitions. The leader brings those of all in ``assignment``."""

    member_id: str
    generation: int
    instance_id: str | None = None
    assignment: Mapping[str, Sequence[Partition]] | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Ask whether the member is still in."""

    member_id: str
    generation: int
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """The member goes: by request, because its session ended, or because it stopped polling."""

    member_id: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing but time has passed. Due at ``GroupMetadata.deadline_s``."""


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """The group is to be no more."""


Request = Join | Sync | Heartbeat | Leave | Tick | DeleteGroup


@dataclass(frozen=True, slots=True)
class Joined:
    """The member is part of ``generation``.

    Only the leader gets the ``members``, and only while they still have to be assigned.
    """

    to: str
    generation: int
    assignor: str
    leader_id: str
    members: Sequence[GroupMember] = ()


@dataclass(frozen=True, slots=True)
class Assigned:
    """These are the member's partitions in ``generation``."""

    to: str
    generation: int
    partitions: Sequence[Partition]


@dataclass(frozen=True, slots=True)
class Alive:
    """The member belongs to the present generation and has nothing to do."""

    to: str


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """The request of ``to`` (its ``fresh_id`` if it had no id) changed nothing, and why."""

    to: str
    error: GroupError


Answer = Joined | Assigned | Alive | RefusedRequest
