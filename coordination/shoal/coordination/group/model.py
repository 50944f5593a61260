"""What a coordinator stores of its group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shoal.coordination.assignors import GroupMember, Partition
from shoal.coordination.group.messages import Answer, Join
from shoal.coordination.group.states import GroupState


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member as the coordinator sees it. ``join`` is its last one, with its present id."""

    id: str
    join: Join
    is_joining: bool = False  # has asked to be part of the next generation; no answer yet
    is_syncing: bool = False  # has asked for its partitions; no answer yet
    has_synced: bool = False  # was given its partitions of this generation

    @property
    def client_id(self) -> str:
        """The member's name for people; its id changes with every life, this does not."""
        return self.join.client_id

    def describe(self) -> GroupMember:
        join = self.join
        return GroupMember(
            self.id, tuple(join.topics), join.owned, join.generation, join.instance_id
        )


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """Everything to remember about a group; equal groups decide equally.

    ``members`` are in the order in which they came. ``pending`` are ids that were given out and
    not used yet. ``deadline_s`` (on the clock of ``now_s``, None: nothing is due) is when a Tick
    makes a difference.
    """

    name: str
    initial_rebalance_delay_s: float = 3.0
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    assignor: str = ""
    leader_id: str | None = None
    members: Mapping[str, MemberState] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    assignment: Mapping[str, tuple[Partition, ...]] = field(default_factory=dict)
    deadline_s: float | None = None
    # Only while the first members of an empty group gather.
    gather_until_s: float | None = None  # wait no longer, even for members that are coming
    has_newcomers: bool = False  # a member came since the wait was last prolonged

    @property
    def leader(self) -> MemberState | None:
        """The member that runs the assignor; None in an empty group."""
        return self.members.get(self.leader_id or "")

    def instance(self, instance_id: str) -> MemberState | None:
        """Return the static member that has ``instance_id``."""
        members = self.members.values()
        return next((m for m in members if m.join.instance_id == instance_id), None)

    @property
    def rebalance_timeout_s(self) -> float:
        """How long members may take to join again: the longest that one of them asks for."""
        timeouts = [member.join.rebalance_timeout_s for member in self.members.values()]
        return max(timeouts, default=0.0)

    @property
    def partition_counts(self) -> dict[str, int]:
        """The partitions of every topic that a member wants; of two counts the larger."""
        counts: dict[str, int] = {}
        for member in self.members.values():
            for topic, count in member.join.topics.items():
                counts[topic] = max(count, counts.get(topic, 0))
        return counts


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The group after a request, and the answers to send once it is stored."""

    group: GroupMetadata
    answers: Sequence[Answer]
