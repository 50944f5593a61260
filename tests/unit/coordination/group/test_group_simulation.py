"""Whole groups under faults, in virtual time: every schedule is replayed by its seed.

Members meet at a fake ZooKeeper: one versioned node that holds the group, and one ephemeral node
for each session. Writes are lost, or done without an answer; views are late; watches do not fire;
processes are killed, restarted, paused (also beyond the end of their session), stuck with a living
session, doubled, and replaced while they are cut off. After every event the invariants are checked;
then the faults end, and the group must recover by itself.

To replay a failure: ``Schedule(seed).run()``.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from shoal.coordination.assignors import Partition, cooperative_sticky, range_, round_robin, sticky
from shoal.coordination.group import (
    GroupMetadata,
    GroupState,
    Participant,
    ParticipantStep,
    Request,
    decide,
    participant,
)
from shoal.coordination.group.instance_claim import InstanceClaim
from tests.support.length import share

SESSION_S, REBALANCE_S, DELAY_S, REREAD_S = 10.0, 15.0, 3.0, 5.0
COUNTS = {"jobs": 5, "mail": 2}
PARTITIONS = sorted(Partition(topic, i) for topic, count in COUNTS.items() for i in range(count))
FAULTS_UNTIL_S, PATIENCE_S = 45.0, 200.0
BATCHES, BATCH = share(20, 4), 500
NOTHING_TO_DO = ParticipantStep()


class Process:
    """A process with its session, its participant, and what its listener was told."""

    def __init__(self, name: str, instance_id: str | None) -> None:
        self.name, self.instance_id = name, instance_id
        self.claim = InstanceClaim()
        self.was_replaced = False  # another process has taken its place in the group
        self.participant: Participant
        self.proved_s = 0.0  # when ZooKeeper last heard of the session
        self.seen = 0  # version of its last view
        self.paused_until_s = 0.0
        self.told: set[Partition] = set()  # by the listener's count

    def listen(self, step: ParticipantStep) -> None:
        for partition in (*step.lost, *step.revoked):
            self.told.remove(partition)  # KeyError: taken away twice, or never given
        for partition in step.assigned:
            assert partition not in self.told, f"{partition} was given twice to {self.name}"
            self.told.add(partition)
        assert self.told == self.participant.owned


class Schedule:
    """One run: a group, its processes, and the faults that ``seed`` chooses."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_s = 0.0
        self.cooperative = self.random.random() < 0.6
        self.loss = self.random.choice([0.0, 0.05, 0.2])
        # The fake ZooKeeper: all versions of the group's node, and who is registered.
        self.versions = [GroupMetadata("g", initial_rebalance_delay_s=DELAY_S)]
        self.sessions: dict[str, Process | None] = {}  # None: the process is dead
        self.process_of: dict[str, Process] = {}  # member id: whose, for ever
        self.expires_s: dict[str, float] = {}
        self.processes: list[Process] = []
        self.faults: Counter[str] = Counter()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    @property
    def group(self) -> GroupMetadata:
        return self.versions[-1]

    # ------------------------------------------------------------------ virtual time

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.now_s + delay_s, self._count, action))

    def run(self) -> "Schedule":
        for number in range(self.random.randint(1, 4)):
            instance_id = f"i{number}" if self.random.random() < 0.4 else None
            self.after(self.random.uniform(0, 5), partial(self.start, instance_id))
        for _ in range(self.random.randint(1, 5)):
            self.after(self.random.uniform(2, FAULTS_UNTIL_S), self.fault)
        self.advance(lambda: self.now_s > FAULTS_UNTIL_S)
        self.loss = 0.0
        self.advance(self.is_settled)
        return self

    def advance(self, is_done: Callable[[], bool]) -> None:
        limit_s = self.now_s + PATIENCE_S
        while not is_done():
            assert self.now_s < limit_s, f"not settled: {self.group}"
            if not self._agenda:
                return
            self.now_s, _, action = heapq.heappop(self._agenda)
            action()

    # ------------------------------------------------------------------ processes

    def start(self, instance_id: str | None) -> None:
        process = Process(f"p{self._count}", instance_id)
        self.processes.append(process)
        self.begin_session(process)
        self.wake(process)

    def begin_session(self, process: Process) -> None:
        self._count += 1
        member_id = f"{process.name}-{self._count}"
        if self.cooperative:
            assignors = {"cooperative-sticky": cooperative_sticky}
        else:
            names = {"sticky": sticky, "range": range_, "round-robin": round_robin}
            chosen = self.random.sample(sorted(names), self.random.randint(1, 3))
            assignors = {name: names[name] for name in {*chosen, "range"}}
        process.participant = Participant(
            member_id,
            assignors,
            COUNTS,
            rebalance_timeout_s=REBALANCE_S,
            cooperative=self.cooperative,
            instance_id=process.instance_id,
            claim=process.claim,
        )
        self.process_of[member_id] = process
        self.sessions[member_id] = process
        self.touch(process)

    def touch(self, process: Process) -> None:
        self.expires_s[process.participant.id] = self.now_s + SESSION_S

    def expire_sessions(self) -> None:
        for member_id in [key for key, at_s in self.expires_s.items() if at_s <= self.now_s]:
            del self.expires_s[member_id], self.sessions[member_id]

    def wake(self, process: Process) -> None:
        """One turn of the process, and the next one after a while, whatever happens."""
        if process not in self.processes or process.participant.is_fenced:
            return
        if process.paused_until_s > self.now_s:
            self.after(process.paused_until_s - self.now_s, lambda: self.wake(process))
            return
        self.turn(process)
        self.after(self.random.uniform(0.5, 1.0) * REREAD_S, lambda: self.wake(process))

    def turn(self, process: Process) -> None:
        self.expire_sessions()
        if process.participant.id not in self.sessions:
            process.listen(process.participant.end_session())
            self.begin_session(process)
        self.touch(process)
        # A view may be late, but not older than what this process has seen.
        newest = len(self.versions) - 1
        late = self.random.random() < 0.1 + self.loss
        process.seen = self.random.randint(process.seen, newest) if late else newest
        view = self.versions[process.seen]
        step = process.participant.step(view, set(self.sessions), self.now_s)
        if step == NOTHING_TO_DO:
            return
        process.listen(step)
        self.check()
        if step.request is not None:
            self.write(process, step.request)
            self.check()

    def write(self, process: Process, request: Request) -> None:
        """Set the node if it still has the version that was read; then watches fire."""
        is_refused = process.seen != len(self.versions) - 1
        if is_refused or self.random.random() < self.loss:
            self.faults["write refused or lost"] += 1
            if is_refused:
                process.participant.note_refusal()
            self.after(0.1, partial(self.once, process))
            return
        group = decide(self.versions[process.seen], request, self.now_s).group
        if group == self.group:
            return
        self.note_replacement(self.group, group)
        self.versions.append(group)
        if self.random.random() < self.loss:
            self.faults["answer lost"] += 1
        else:
            process.seen = len(self.versions) - 1
        for other in self.processes:
            if self.random.random() >= self.loss / 2:
                self.after(self.random.uniform(0.01, 0.3), partial(self.once, other))

    def once(self, process: Process) -> None:
        if process not in self.processes or process.participant.is_fenced:
            return
        if process.paused_until_s <= self.now_s:
            self.turn(process)

    # ------------------------------------------------------------------ faults

    def fault(self) -> None:
        if not self.processes:
            return
        process = self.random.choice(self.processes)
        leaders = [p for p in self.processes if p.participant.id == self.group.leader_id]
        if leaders and self.random.random() < 0.4:
            process = leaders[0]
        kind = self.random.choice(
            ["kill", "restart", "pause", "slow", "newcomer", "twin", "zombie"]
        )
        self.faults[kind] += 1
        if kind == "newcomer":
            self.start(None)
        elif kind == "twin":  # two processes with one instance id: the older is fenced
            self.start(process.instance_id)
        elif kind == "zombie":  # cut off, replaced meanwhile, and back again
            process.paused_until_s = self.now_s + self.random.uniform(1.0, 3.0) * SESSION_S
            start_s = self.random.uniform(0.0, 2.0 * SESSION_S)
            self.after(start_s, lambda: self.start(process.instance_id))
        elif kind in ("pause", "slow"):
            process.paused_until_s = self.now_s + self.random.uniform(0.5, 3.0 * SESSION_S)
            if kind == "slow" and process.participant.id in self.expires_s:
                # Only its work is stuck; the session lives on.
                self.expires_s[process.participant.id] = process.paused_until_s + SESSION_S
        else:
            self.processes.remove(process)
            if process.participant.id in self.sessions:
                self.sessions[process.participant.id] = None
            if kind == "restart":
                restart_s = self.random.uniform(0.1, 1.5 * SESSION_S)
                self.after(restart_s, lambda: self.start(process.instance_id))

    # ------------------------------------------------------------------ what must hold

    def check(self) -> None:
        """No partition is held twice by members, and a generation is never taken back."""
        holders: Counter[Partition] = Counter()
        for process in self.processes:
            member = process.participant
            if member.id in self.group.members and not self.may_be_stale(member):
                holders.update(member.owned)
        twice = [partition for partition, count in holders.items() if count > 1]
        assert not twice, f"{twice} have two owners at {self.now_s}"
        if len(self.versions) > 1:
            assert self.versions[-2].generation <= self.group.generation

    def note_replacement(self, before: GroupMetadata, after: GroupMetadata) -> None:
        """A process that another one has replaced never takes that one's place."""
        for member in after.members.values():
            old = before.instance(member.join.instance_id or "")
            if old is None or old.id == member.id:
                continue
            replaced, new = self.process_of[old.id], self.process_of[member.id]
            if replaced is not new:
                assert not new.was_replaced, f"{new.name} fences what replaced it: {replaced.name}"
                replaced.was_replaced = True

    def may_be_stale(self, member: Participant) -> bool:
        """An eager static member that did not join is not evicted, as in Kafka.

        Others may then have what it has not given up, until it sees the new generation.
        """
        return (
            not self.cooperative
            and member.instance_id is not None
            and member.generation != self.group.generation
        )

    def is_settled(self) -> bool:
        """Whether all that live are members and share everything out, each partition once."""
        living = [p.participant for p in self.processes if not p.participant.is_fenced]
        members = self.group.members
        if not living:
            return True
        return (
            self.group.state is GroupState.STABLE
            and members.keys() == {each.id for each in living}
            and all(member.has_synced for member in members.values())
            and sorted(each for p in living for each in p.owned) == PARTITIONS
        )


@pytest.mark.parametrize("batch", range(BATCHES))
def test_groups_recover_from_anything_and_never_share_a_partition(batch: int) -> None:
    faults: Counter[str] = Counter()
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        try:
            faults += Schedule(seed).run().faults
        except Exception as error:
            error.add_note(f"replay with Schedule({seed}).run()")
            raise
    # Every kind of fault has bitten, or this proves nothing.
    assert len(faults) == 9
    assert min(faults.values()) > BATCH / 20


# ------------------------------------------------------------------ the simulation itself


class Unconditional(Schedule):
    """Writes whatever the node's version."""

    def write(self, process: Process, request: Request) -> None:
        view = self.versions[process.seen]
        process.seen = len(self.versions)
        self.versions.append(decide(view, request, self.now_s).group)


def run_many(kind: type[Schedule]) -> None:
    for seed in range(500):
        kind(seed).run()


def test_it_notices_when_writes_are_not_conditional() -> None:
    with pytest.raises(AssertionError):
        run_many(Unconditional)


def test_it_notices_when_nothing_is_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "cooperative_sticky", sticky)
    with pytest.raises(AssertionError, match="two owners"):
        run_many(Schedule)


def test_it_notices_when_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Participant, "_drop", lambda self: ())
    with pytest.raises(AssertionError):
        run_many(Schedule)


def test_it_notices_when_nobody_sees_off_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "_chore", lambda *_: None)
    with pytest.raises(AssertionError, match="not settled"):
        run_many(Schedule)


def test_it_notices_when_what_was_replaced_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InstanceClaim, "ask", lambda *_: None)
    monkeypatch.setattr(InstanceClaim, "confirm", lambda *_: None)
    with pytest.raises(AssertionError, match="fences what replaced it"):
        run_many(Schedule)


def test_a_schedule_is_replayed_by_its_seed() -> None:
    assert Schedule(7).run().versions == Schedule(7).run().versions
