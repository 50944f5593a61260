"""All decisions about a group: members, leader, generation, assignment."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from shoal.coordination.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupError,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
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
from shoal.coordination.group.states import GroupSignal, GroupState, next_state


def decide(group: GroupMetadata, request: Request, now_s: float) -> GroupDecision:
    """Return what becomes of ``group``. A refused request leaves it as it was, but see below.

    The one exception: MemberIdRequired gives out an id, which ``GroupMetadata.pending`` remembers.
    """
    turn = _Turn(group, now_s)
    try:
        turn.take(request)
    except MemberIdRequired as error:
        pending = group.pending | {error.member_id}
        return GroupDecision(
            replace(group, pending=pending), [RefusedRequest(error.member_id, error)]
        )
    except GroupError as error:
        return GroupDecision(group, [RefusedRequest(_sender(request), error)])
    return GroupDecision(turn.group, turn.answers)


def _sender(request: Request) -> str:
    match request:
        case Join():
            return request.member_id or request.fresh_id
        case Sync() | Heartbeat() | Leave():
            return request.member_id
        case Tick() | DeleteGroup():
            return ""


class _Turn:
    """One call of ``decide``: the group as it changes, and the answers so far."""

    def __init__(self, group: GroupMetadata, now_s: float) -> None:
        self.group, self._now_s = group, now_s
        self.answers: list[Answer] = []

    def take(self, request: Request) -> None:
        if self.group.state is GroupState.DEAD:
            raise CoordinatorNotAvailable(self.group.name)
        match request:
            case Join():
                self._join(request)
            case Sync():
                self._sync(request)
            case Heartbeat():
                self._heartbeat(request)
            case Leave():
                self._leave(request.member_id)
            case Tick():
                self._tick()
            case DeleteGroup():
                self._delete()

    # ------------------------------------------------------------------ join

    def _join(self, join: Join) -> None:
        known = self._recognise(join)
        join = replace(join, replaceable=None)  # was about this request alone
        others = [m for m in self.group.members.values() if known is None or m.id != known.id]
        self._must_agree(join, others)
        if known is None:
            self._come(join)
        elif join.member_id is None:
            self._come_back(known, join)
        else:
            self._join_again(known, join)
        self._gather_if_complete()

    def _recognise(self, join: Join) -> MemberState | None:
        """Return the member that this is, None for a new one. Raises what is wrong with its id."""
        group = self.group
        if join.member_id is not None:
            if join.member_id not in group.pending or join.instance_id is not None:
                return self._known(join.member_id, join.instance_id)
            return None
        if join.instance_id is None:
            self._must_agree(join, list(group.members.values()))
            raise MemberIdRequired(group.name, join.fresh_id)
        found = self.group.instance(join.instance_id)
        if found and join.replaceable is not None and found.id not in join.replaceable:
            raise FencedInstanceId(group.name, join.fresh_id, join.instance_id)
        return found

    def _must_agree(self, join: Join, others: Sequence[MemberState]) -> None:
        common = set(join.assignors).intersection(*(other.join.assignors for other in others))
        if not common:
            supported = [other.join.assignors for other in others]
            raise InconsistentGroupProtocol(self.group.name, join.assignors, supported)

    def _come(self, join: Join) -> None:
        """A member that the group has not seen before."""
        member_id = join.member_id or join.fresh_id
        pending = self.group.pending - {member_id}
        self._put(MemberState(member_id, replace(join, member_id=member_id), is_joining=True))
        leader_id = self.group.leader_id or member_id
        self.group = replace(self.group, pending=pending, leader_id=leader_id, has_newcomers=True)
        self._rebalance()

    def _come_back(self, old: MemberState, join: Join) -> None:
        """A static member has restarted: the old id is fenced off, the new one takes its place.

        In a stable group it takes over its partitions too, and no other member notices. Unless the
        old one still had to give something up: now it never will, and others wait for it.
        """
        if old.is_joining or old.is_syncing:
            self._refuse(old.id, FencedInstanceId(self.group.name, old.id, join.instance_id or ""))
        member = MemberState(join.fresh_id, replace(join, member_id=join.fresh_id))
        self._replace(old.id, member)
        group = self.group
        gives_nothing_up = set(old.join.owned) <= set(group.assignment.get(member.id, ()))
        is_as_before = join.topics == old.join.topics and self._elect() == group.assignor
        if group.state is GroupState.STABLE and gives_nothing_up and is_as_before:
            # It reads its partitions with its place, so it need not ask for them.
            self._put(replace(member, has_synced=old.has_synced))
            self._answer_joined(member)
            return
        self._put(replace(member, is_joining=True))
        self._rebalance()

    def _join_again(self, member: MemberState, join: Join) -> None:
        before = member.join
        as_before = (
            list(join.assignors) == list(before.assignors)
            and join.topics == before.topics
            and set(join.owned) == set(before.owned)
        )
        is_lost_answer = self.group.state is GroupState.COMPLETING_REBALANCE or (
            # The leader joins again to have the partitions assigned anew.
            self.group.state is GroupState.STABLE and member.id != self.group.leader_id
        )
        if as_before and is_lost_answer:
            self._answer_joined(member)
            return
        self._put(replace(member, join=join, is_joining=True))
        self._rebalance()

    # ------------------------------------------------------------------ rebalance

    def _rebalance(self) -> None:
        """Begin to gather the next generation, unless that is under way."""
        group = self.group
        if group.state is GroupState.PREPARING_REBALANCE:
            return
        from_empty = group.state is GroupState.EMPTY
        for member in group.members.values():
            if member.is_syncing:
                self._refuse(member.id, RebalanceInProgress(group.name))
            if member.is_syncing or member.has_synced:
                self._put(replace(member, is_syncing=False, has_synced=False))
        self._signal(GroupSignal.CHANGE)
        limit_s = self._now_s + self.group.rebalance_timeout_s
        if from_empty:
            first_s = min(self._now_s + group.initial_rebalance_delay_s, limit_s)
            self.group = replace(
                self.group, deadline_s=first_s, gather_until_s=limit_s, has_newcomers=False
            )
        else:
            self.group = replace(self.group, deadline_s=limit_s, gather_until_s=None)

    def _gather_if_complete(self) -> None:
        group = self.group
        waits = group.state is GroupState.PREPARING_REBALANCE and group.gather_until_s is None
        if waits and not group.pending and all(m.is_joining for m in group.members.values()):
            self._gather()

    def _gather(self) -> None:
        """Close the next generation. A member that has not joined is evicted, unless it is static.

        Static ones are taken to keep all that they were given: no other may get it at once.
        """
        for member in list(self.group.members.values()):
            if not member.is_joining and member.join.instance_id is None:
                self._remove(member.id)
            elif not member.is_joining:
                given = self.group.assignment.get(member.id, ())
                owned = tuple(dict.fromkeys([*member.join.owned, *given]))
                self._put(replace(member, join=replace(member.join, owned=owned)))
        group = self.group
        if not group.members:
            self._signal(GroupSignal.DESERT)
            self.group = replace(
                self.group,
                generation=group.generation + 1,
                assignor="",
                assignment={},
                deadline_s=None,
                gather_until_s=None,
            )
            return
        joining = [member for member in group.members.values() if member.is_joining]
        if not joining:
            # Only static members that are restarting: none is there to lead.
            self.group = replace(group, deadline_s=self._now_s + group.rebalance_timeout_s)
            return
        leads_on = any(member.id == group.leader_id for member in joining)
        self._signal(GroupSignal.GATHER)
        self.group = replace(
            self.group,
            generation=group.generation + 1,
            assignor=self._elect(),
            leader_id=group.leader_id if leads_on else joining[0].id,
            assignment={},
            deadline_s=self._now_s + group.rebalance_timeout_s,
            gather_until_s=None,
        )
        for member in joining:
            self._put(replace(member, is_joining=False))
            self._answer_joined(member)

    def _elect(self) -> str:
        """Return the assignor with most votes: each member's first choice that all support.

        Of several with equally many it is the one that the oldest member prefers.
        """
        preferences = [member.join.assignors for member in self.group.members.values()]
        common = set(preferences[0]).intersection(*preferences[1:])
        votes = Counter(next(name for name in names if name in common) for names in preferences)
        return max(
            (name for name in preferences[0] if name in common), key=lambda name: votes[name]
        )

    # ------------------------------------------------------------------ sync, heartbeat

    def _sync(self, sync: Sync) -> None:
        member = self._current(sync.member_id, sync.instance_id, sync.generation)
        if self.group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(self.group.name)
        self._put(replace(member, is_syncing=True))
        is_awaited = self.group.state is GroupState.COMPLETING_REBALANCE
        if is_awaited and member.id == self.group.leader_id and sync.assignment is not None:
            assignment = {key: tuple(value) for key, value in sync.assignment.items()}
            self.group = replace(self.group, assignment=assignment)
            self._signal(GroupSignal.ASSIGN)
        if self.group.state is GroupState.STABLE:
            for member in list(self.group.members.values()):
                if member.is_syncing:
                    partitions = self.group.assignment.get(member.id, ())
                    self.answers.append(Assigned(member.id, self.group.generation, partitions))
                    self._put(replace(member, is_syncing=False, has_synced=True))
            if all(member.has_synced for member in self.group.members.values()):
                self.group = replace(self.group, deadline_s=None)

    def _heartbeat(self, beat: Heartbeat) -> None:
        self._current(beat.member_id, beat.instance_id, beat.generation)
        if self.group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(self.group.name)
        self.answers.append(Alive(beat.member_id))

    # ------------------------------------------------------------------ leaving

    def _leave(self, member_id: str) -> None:
        if member_id in self.group.pending:
            self.group = replace(self.group, pending=self.group.pending - {member_id})
        else:
            self._known(member_id, None)
            self._remove(member_id)
            self._rebalance()
        self._gather_if_complete()

    def _tick(self) -> None:
        group = self.group
        if group.deadline_s is None or self._now_s < group.deadline_s:
            return
        if group.state is GroupState.PREPARING_REBALANCE:
            limit_s = group.gather_until_s
            if limit_s is not None and group.has_newcomers and self._now_s < limit_s:
                next_s = min(self._now_s + group.initial_rebalance_delay_s, limit_s)
                self.group = replace(group, deadline_s=next_s, has_newcomers=False)
            else:
                self._gather()
            return
        # A member has not asked for its partitions, or the leader has not assigned them.
        for member in list(group.members.values()):
            is_late_leader = member.id == group.leader_id and not member.has_synced
            if not (is_late_leader or not (member.has_synced or member.is_syncing)):
                continue
            if member.join.instance_id is None:
                self._remove(member.id)
            elif is_late_leader:
                self._pass_lead(member.id)
        if group.state is GroupState.STABLE and len(self.group.members) == len(group.members):
            # Only static members that are restarting: no other member waits for them.
            self.group = replace(self.group, deadline_s=None)
            return
        self._rebalance()
        self._gather_if_complete()

    def _pass_lead(self, late_id: str) -> None:
        """Let a member that waits for its partitions lead, if there is one; both stay members."""
        waiting = (m.id for m in self.group.members.values() if m.is_syncing and m.id != late_id)
        self.group = replace(self.group, leader_id=next(waiting, late_id))

    def _delete(self) -> None:
        for member in self.group.members.values():
            if member.is_joining or member.is_syncing:
                self._refuse(member.id, CoordinatorNotAvailable(self.group.name))
        self._signal(GroupSignal.DELETE)
        group = self.group
        self.group = GroupMetadata(
            group.name,
            group.initial_rebalance_delay_s,
            state=group.state,
            generation=group.generation,
        )

    # ------------------------------------------------------------------ members

    def _known(self, member_id: str, instance_id: str | None) -> MemberState:
        """Return the member. Raises UnknownMemberId, or FencedInstanceId if it was replaced."""
        group = self.group
        if instance_id is not None:
            member = group.instance(instance_id)
            if member is not None and member.id != member_id:
                raise FencedInstanceId(group.name, member_id, instance_id)
        found = group.members.get(member_id)
        if found is None or (instance_id is not None and found.join.instance_id != instance_id):
            raise UnknownMemberId(group.name, member_id)
        return found

    def _current(self, member_id: str, instance_id: str | None, generation: int) -> MemberState:
        member = self._known(member_id, instance_id)
        if generation != self.group.generation:
            raise IllegalGeneration(self.group.name, generation, self.group.generation)
        return member

    def _put(self, member: MemberState) -> None:
        self.group = replace(self.group, members={**self.group.members, member.id: member})

    def _replace(self, old_id: str, member: MemberState) -> None:
        """Give ``member`` the place of ``old_id``, with its partitions and its leadership."""
        group = self.group
        ids = {old_id: member.id}
        members = {ids.get(key, key): value for key, value in group.members.items()}
        self.group = replace(
            group,
            members={**members, member.id: member},
            assignment={ids.get(key, key): value for key, value in group.assignment.items()},
            leader_id=ids.get(group.leader_id or "", group.leader_id),
        )

    def _remove(self, member_id: str) -> None:
        group = self.group
        gone = group.members[member_id]
        if gone.is_joining or gone.is_syncing:
            self._refuse(member_id, UnknownMemberId(group.name, member_id))
        members = {key: value for key, value in group.members.items() if key != member_id}
        leader_id = group.leader_id
        if leader_id == member_id:
            leader_id = next(iter(members), None)
        self.group = replace(group, members=members, leader_id=leader_id)

    # ------------------------------------------------------------------ answers

    def _answer_joined(self, member: MemberState) -> None:
        group = self.group
        leader_id = group.leader_id or ""
        leads = member.id == leader_id and group.state is GroupState.COMPLETING_REBALANCE
        members = [each.describe() for each in group.members.values()] if leads else []
        self.answers.append(
            Joined(member.id, group.generation, group.assignor, leader_id, tuple(members))
        )

    def _refuse(self, member_id: str, error: GroupError) -> None:
        self.answers.append(RefusedRequest(member_id, error))

    def _signal(self, signal: GroupSignal) -> None:
        self.group = replace(self.group, state=next_state(self.group.state, signal))
