"""The member's side of the protocol: what to give up, take on and ask for, given the group."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from shoal.coordination.assignors import Assignor, Partition
from shoal.coordination.assignors.coverage import assign_covered
from shoal.coordination.assignors.member import NO_GENERATION, Assignment
from shoal.coordination.errors import AssignorFailed
from shoal.coordination.group.instance_claim import InstanceClaim
from shoal.coordination.group.messages import Join, Leave, Request, Sync, Tick
from shoal.coordination.group.model import GroupMetadata, MemberState
from shoal.coordination.group.states import GroupState


@dataclass(frozen=True, slots=True)
class ParticipantStep:
    """What a member does next, in this order.

    ``lost``: partitions that another member may have already; stop without writing. ``revoked``:
    to be given up in order, before ``request`` is sent. ``assigned``: to be taken on.
    """

    lost: tuple[Partition, ...] = ()
    revoked: tuple[Partition, ...] = ()
    assigned: tuple[Partition, ...] = ()
    request: Request | None = None


class Participant:
    """One member from the registration of its session until that session ends.

    ``step`` is called with every new view of the group and says what to do; no IO, no clock. Its
    request is to be decided on that very view: by ``decide``, and a write that succeeds only if
    the group has not changed since. Requests of other members that were made on the same view may
    come before it in the same write. If the write fails, or its result is not known, the next
    step finds out from the next view. Views may be late, but never older than one before.

    ``cooperative`` says that the member keeps working while the group rebalances; all its
    assignors must then hold back what has to move, as ``cooperative_sticky`` does. ``claim`` passes
    from each member of a process to the next one; without it the process enters for the first time.
    """

    def __init__(
        self,
        member_id: str,
        assignors: Mapping[str, Assignor],
        partition_counts: Mapping[str, int],
        *,
        rebalance_timeout_s: float,
        cooperative: bool,
        instance_id: str | None = None,
        client_id: str = "",
        claim: InstanceClaim | None = None,
    ) -> None:
        self.id, self.instance_id, self._client_id = member_id, instance_id, client_id
        self._claim = claim or InstanceClaim()
        self._assignors, self._partition_counts = assignors, dict(partition_counts)
        self._rebalance_timeout_s, self._cooperative = rebalance_timeout_s, cooperative
        self.owned: set[Partition] = set()
        self.generation = NO_GENERATION  # in which it got what it owns
        self.is_fenced = False  # another process has taken this one's instance id; final
        self._was_member = False
        self._must_rejoin = False  # it gave up something that others wait for

    def step(self, group: GroupMetadata, registered: Set[str], now_s: float) -> ParticipantStep:
        """Return what to do about ``group``. ``registered`` are the ids with a live session."""
        if self.is_fenced or self._is_replaced(group):
            self.is_fenced = True
            return ParticipantStep(lost=self._drop())
        me = group.members.get(self.id)
        if me is None:
            return self._enter(group)
        self._was_member = True
        if self.instance_id is not None:
            self._claim.confirm(self.id)
        chore = _chore(group, registered, now_s)
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                return self._prepare(group, me, chore)
            case GroupState.COMPLETING_REBALANCE:
                return ParticipantStep(request=self._assign_or_wait(group, me) or chore)
            case GroupState.STABLE:
                return self._settle(group, me, chore)
            case GroupState.EMPTY | GroupState.DEAD:
                return ParticipantStep()  # such a group has no members

    def end_session(self) -> ParticipantStep:
        """The session is over: all is lost, and so is the id."""
        return ParticipantStep(lost=self._drop())

    def note_refusal(self) -> None:
        """The request of the last step was certainly not written."""
        self._claim.withdraw()

    def is_out(self, group: GroupMetadata) -> bool:
        """Whether the group goes on without this member, which has been part of it."""
        return self._is_replaced(group) or (self._was_member and self.id not in group.members)

    def _is_replaced(self, group: GroupMetadata) -> bool:
        if self.instance_id is None:
            return False
        found = group.instance(self.instance_id)
        return found is not None and found.id != self.id and not self._claim.covers(found.id)

    def _enter(self, group: GroupMetadata) -> ParticipantStep:
        """Join for the first time, or again after an eviction."""
        lost = self._drop()
        self._was_member = self._must_rejoin = False
        if group.state is GroupState.DEAD:
            return ParticipantStep(lost=lost)
        if self.instance_id is None:
            return ParticipantStep(
                lost=lost, request=self._join(self.id if self.id in group.pending else None)
            )
        request = self._join(None)
        old = group.instance(self.instance_id)
        self._claim.ask(self.id, old.id if old else None)
        return ParticipantStep(lost=lost, request=request)

    def _prepare(
        self, group: GroupMetadata, me: MemberState, chore: Request | None
    ) -> ParticipantStep:
        if me.is_joining:
            return ParticipantStep(request=chore)
        revoked = self._move_on(group) if self._cooperative else self._drop()
        return ParticipantStep(revoked=revoked, request=self._join(self.id))

    def _move_on(self, group: GroupMetadata) -> tuple[Partition, ...]:
        """Return what the member must give up by an assignment that it has not seen in time.

        Another member has joined again already, because it had to give something up. If this one
        kept what it has until the next assignment, each of them would cost a generation.
        """
        if not group.assignment or self.generation == group.generation:
            return ()
        target = group.assignment.get(self.id, ())
        revoked = tuple(sorted(self.owned.difference(target)))
        self.owned.intersection_update(target)
        return revoked

    def _assign_or_wait(self, group: GroupMetadata, me: MemberState) -> Request | None:
        if self.id == group.leader_id:
            assignment = assign_all(group, self._assignors[group.assignor])
            return Sync(self.id, group.generation, self.instance_id, assignment)
        if me.is_syncing:
            return None
        return Sync(self.id, group.generation, self.instance_id)

    def _settle(
        self, group: GroupMetadata, me: MemberState, chore: Request | None
    ) -> ParticipantStep:
        revoked: tuple[Partition, ...] = ()
        assigned: tuple[Partition, ...] = ()
        if self.generation != group.generation:
            target = set(group.assignment.get(self.id, ()))
            revoked = tuple(sorted(self.owned - target))
            assigned = tuple(sorted(target - self.owned))
            self.owned, self.generation = target, group.generation
            self._must_rejoin = self._cooperative and bool(revoked)
        request = chore
        if self._must_rejoin:
            request = self._join(self.id)
        elif not me.has_synced:
            request = Sync(self.id, group.generation, self.instance_id)
        return ParticipantStep(revoked=revoked, assigned=assigned, request=request)

    def _drop(self) -> tuple[Partition, ...]:
        dropped = tuple(sorted(self.owned))
        self.owned = set()
        return dropped

    def _join(self, member_id: str | None) -> Join:
        return Join(
            member_id=member_id,
            fresh_id=self.id,
            assignors=tuple(self._assignors),
            topics=self._partition_counts,
            rebalance_timeout_s=self._rebalance_timeout_s,
            instance_id=self.instance_id,
            owned=tuple(sorted(self.owned)),
            generation=self.generation,
            client_id=self._client_id,
            replaceable=self._claim.replaceable,
        )


def _chore(group: GroupMetadata, registered: Set[str], now_s: float) -> Request | None:
    """Return what any member may do for the group: remove what is gone, let time pass."""
    gone = next((each for each in [*group.members, *group.pending] if each not in registered), None)
    if gone is not None:
        return Leave(gone)
    if group.deadline_s is not None and group.deadline_s <= now_s:
        return Tick()
    return None


def assign_all(group: GroupMetadata, assign: Assignor) -> Assignment:
    """Return which member is to have which partitions. Raises AssignorFailed."""
    counts = group.partition_counts
    members = [member.describe() for member in group.members.values()]
    try:
        known = {member.id: member.join.topics for member in group.members.values()}
        assignment = assign_covered(assign, counts, members, known)
    except Exception as error:
        raise AssignorFailed(group.name, group.assignor, f"raised {error!r}") from error
    if problem := _problem(group, counts, assignment):
        raise AssignorFailed(group.name, group.assignor, problem)
    return assignment


def _problem(group: GroupMetadata, counts: dict[str, int], assignment: Assignment) -> str | None:
    if strangers := sorted(assignment.keys() - group.members.keys()):
        return f"gives partitions to {strangers}, which are not members"
    given = Counter(partition for each in assignment.values() for partition in each)
    if twice := sorted(partition for partition, times in given.items() if times > 1):
        return f"gives {twice[0]} to two members"
    if unknown := sorted(each for each in given if not 0 <= each.index < counts.get(each.topic, 0)):
        return f"gives away {unknown[0]}, which no member asked for"
    return None
