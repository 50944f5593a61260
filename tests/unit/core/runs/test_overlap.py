"""Overlap policies: the cases of the page one by one, and what always holds whatever happens."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.definition.model import Overlap, WorkflowSpec
from shoal.core.runs.overlap import Lineup, Moves, OverlapPolicy, Waiter, refusal, settle

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def waiter(run: int, priority: int = 2, days: int = 0) -> Waiter:
    return Waiter(run, priority, NOON + timedelta(days=days))


@dataclass
class Workflow:
    """A workflow's runs as masters would treat them, one transaction after the other."""

    policy: OverlapPolicy
    active: set[int] = field(default_factory=set)
    stopping: set[int] = field(default_factory=set)  # of those
    waiting: dict[int, Waiter] = field(default_factory=dict)
    admitted: list[int] = field(default_factory=list)  # in this order
    superseded: list[int] = field(default_factory=list)
    last: int = 0

    def lineup(self) -> Lineup:
        """What the database would be asked for."""
        waiting = tuple(self.waiting.values())
        if self.policy.overlap in (Overlap.QUEUE, Overlap.QUEUE_BY_PRIORITY):
            by_priority = self.policy.overlap is Overlap.QUEUE_BY_PRIORITY
            waiting = tuple(
                sorted(
                    waiting,
                    key=lambda w: (w.priority, w.logical_time, w.id) if by_priority else (w.id,),
                )[: self.policy.max_active]
            )
        replaceable = sorted(self.active - self.stopping)
        return Lineup(len(self.active), waiting, len(self.waiting), tuple(replaceable))

    def start(self, *priorities: int, days: int = 0) -> list[str | None]:
        """Start runs in one transaction; return why each was refused."""
        lineup, said = self.lineup(), []
        for priority in priorities:
            reason = refusal(self.policy, lineup.active, lineup.waiting_count)
            said.append(reason)
            if reason is not None:
                continue
            self.last += 1
            self.waiting[self.last] = waiter(self.last, priority, days)
            lineup = lineup.joined_by(self.waiting[self.last])
            moves = settle(self.policy, lineup)
            self.store(moves)
            lineup = lineup.after(moves)
            assert (lineup.active, lineup.waiting_count) == (len(self.active), len(self.waiting))
        return said

    def end(self, run: int) -> Moves:
        """Let a run end, active or not; return what follows."""
        self.active.discard(run)
        self.stopping.discard(run)
        self.waiting.pop(run, None)
        return self.look()

    def look(self) -> Moves:
        moves = settle(self.policy, self.lineup())
        self.store(moves)
        return moves

    def store(self, moves: Moves) -> None:
        for run in moves.admit:
            del self.waiting[run]
            self.active.add(run)
        for run in moves.supersede:
            del self.waiting[run]
        self.admitted += moves.admit
        self.superseded += moves.supersede
        assert self.active.issuperset(moves.replace)
        assert not self.stopping.intersection(moves.replace)
        self.stopping |= set(moves.replace)
        assert (moves.by is None) == (not moves.supersede and not moves.replace)


def workflow(overlap: Overlap, max_active: int = 1, max_queued: int = 1_000) -> Workflow:
    return Workflow(OverlapPolicy(overlap, max_active, max_queued))


# -- the page ---------------------------------------------------------------------------------


def test_policy_comes_from_the_definition() -> None:
    task = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
    fields = {"overlap": "replace", "max_active": 3, "max_queued": 7}
    spec = WorkflowSpec.model_validate({"name": "w", "tasks": [task], **fields})
    assert OverlapPolicy.of(spec) == OverlapPolicy(Overlap.REPLACE, 3, 7)


def test_refusal_names_the_runs_in_the_way() -> None:
    skip = OverlapPolicy(Overlap.SKIP_NEW, 1, 1)
    assert "1 run is unfinished (run 312), and" in (refusal(skip, 1, 0, (312,)) or "")
    queue = OverlapPolicy(Overlap.QUEUE, 4, 1)
    reason = refusal(queue, 4, 1, (5, 6, 7, 8))
    assert reason == (
        "1 run is waiting already (behind runs 5, 6, 7, …), and no more than 1 may wait "
        "(max_queued)"
    )
    lineup = Lineup(active=1, active_ids=(5,)).after(Moves(admit=(6,)))
    assert lineup.active_ids == (5, 6)


def test_allow_starts_everything() -> None:
    runs = workflow(Overlap.ALLOW)
    assert runs.start(*[2] * 5) == [None] * 5
    assert runs.active == {1, 2, 3, 4, 5}


def test_queue_is_first_come_first_served() -> None:
    runs = workflow(Overlap.QUEUE, max_active=2)
    runs.start(2, 2, 4, 0, days=1)
    runs.start(0)
    assert (runs.active, list(runs.waiting)) == ({1, 2}, [3, 4, 5])
    assert runs.end(2) == Moves(admit=(3,))
    assert runs.end(4) == Moves()  # one that waits is stopped
    assert runs.end(1) == Moves(admit=(5,))


def test_queue_by_priority_goes_by_priority_then_logical_time_then_age() -> None:
    runs = workflow(Overlap.QUEUE_BY_PRIORITY)
    runs.start(4)
    runs.start(2, days=5)
    runs.start(2, 2, days=3)
    runs.start(0, days=9)
    for ended in (1, 5, 3, 4, 2):
        runs.end(ended)
    assert runs.admitted == [1, 5, 3, 4, 2]


def test_queue_latest_lets_only_the_newest_wait() -> None:
    runs = workflow(Overlap.QUEUE_LATEST)
    runs.start(2, 2)
    assert (runs.active, list(runs.waiting), runs.superseded) == ({1}, [2], [])
    runs.start(2, 2)
    assert (list(runs.waiting), runs.superseded) == ([4], [2, 3])
    assert runs.end(1) == Moves(admit=(4,))


def test_skip_new_refuses_with_the_reason() -> None:
    runs = workflow(Overlap.SKIP_NEW, max_active=2)
    first, second, third = runs.start(2, 2, 2)
    assert (first, second) == (None, None)
    assert third == ("2 runs are unfinished, and no more than 2 may overlap (overlap: skip_new)")
    runs.end(1)
    assert runs.start(2) == [None]
    assert runs.active == {2, 3}


def test_replace_stops_the_oldest_and_waits_for_its_end() -> None:
    runs = workflow(Overlap.REPLACE, max_active=2)
    runs.start(2, 2, 2)
    assert (runs.active, runs.stopping, list(runs.waiting)) == ({1, 2}, {1}, [3])
    runs.start(2)
    assert (runs.stopping, list(runs.waiting)) == ({1, 2}, [3, 4])
    runs.start(2)  # the third one of three: the oldest that waits has lost its place
    assert (runs.superseded, list(runs.waiting)) == ([3], [4, 5])
    assert runs.end(2) == Moves(admit=(4,))
    assert runs.end(1) == Moves(admit=(5,))


def test_replace_leaves_alone_what_ends_anyway() -> None:
    runs = workflow(Overlap.REPLACE, max_active=2)
    runs.start(2, 2)
    runs.stopping.add(2)  # by a person
    runs.start(2)
    assert runs.stopping == {2}
    assert runs.end(2) == Moves(admit=(3,))


def test_fewer_places_stop_nobody_until_a_new_run_comes() -> None:
    runs = workflow(Overlap.REPLACE, max_active=3)
    runs.start(2, 2, 2)
    runs.policy = OverlapPolicy(Overlap.REPLACE, 1, 1_000)
    assert runs.look() == Moves()
    runs.start(2)
    assert runs.stopping == {1, 2, 3}


@pytest.mark.parametrize("overlap", [Overlap.QUEUE, Overlap.QUEUE_BY_PRIORITY])
def test_full_queue_refuses_with_the_reason(overlap: Overlap) -> None:
    runs = workflow(overlap, max_active=1, max_queued=2)
    *accepted, refused = runs.start(2, 2, 2, 2)
    assert accepted == [None] * 3
    assert refused == "2 runs are waiting already, and no more than 2 may wait (max_queued)"
    runs.end(1)
    assert runs.start(2) == [None]


def test_room_that_was_missed_goes_to_who_waits_not_to_who_comes() -> None:
    runs = workflow(Overlap.QUEUE)
    runs.start(2, 2)
    runs.active.clear()  # ended without anybody looking
    runs.start(2)
    assert (runs.active, list(runs.waiting)) == ({2}, [3])


def test_more_room_after_a_new_version_is_used_at_the_next_look() -> None:
    runs = workflow(Overlap.QUEUE)
    runs.start(2, 2, 2, 2)
    runs.policy = OverlapPolicy(Overlap.QUEUE, 3, 1_000)
    assert runs.look() == Moves(admit=(2, 3))
    runs.policy = OverlapPolicy(Overlap.ALLOW, 1, 1_000)
    assert runs.look() == Moves(admit=(4,))


# -- whatever happens -------------------------------------------------------------------------

policies = st.builds(OverlapPolicy, st.sampled_from(Overlap), st.integers(1, 4), st.integers(1, 6))
steps = st.one_of(
    st.lists(st.integers(0, 4), min_size=1, max_size=4).map(lambda p: ("start", p)),
    st.integers(0, 30).map(lambda n: ("end", n)),
    st.integers(0, 30).map(lambda n: ("stop", n)),
    policies.map(lambda p: ("publish", p)),
)


def check(runs: Workflow) -> None:
    """What must hold after every transaction."""
    policy = runs.policy
    assert settle(policy, runs.lineup()) == Moves(), "nobody waits while there is room"
    if runs.waiting:
        assert policy.overlap is not Overlap.ALLOW
        assert len(runs.active) >= policy.max_active
    if policy.overlap is Overlap.QUEUE_LATEST:
        assert len(runs.waiting) <= 1
    if policy.overlap is Overlap.REPLACE and runs.waiting:
        # So many are being stopped that all who wait will get a place.
        assert len(runs.active - runs.stopping) + len(runs.waiting) <= policy.max_active


@given(policies, st.lists(steps, max_size=40))
def test_invariants_hold_through_starts_ends_and_new_versions(
    policy: OverlapPolicy, history: list[tuple[str, object]]
) -> None:
    runs = Workflow(policy)
    most = policy.max_active  # of all versions so far
    unlimited = policy.overlap is Overlap.ALLOW
    for step, value in history:
        match step, value:
            case "start", list():
                before = len(runs.waiting)
                refused = [r for r in runs.start(*value) if r is not None]
                if runs.policy.overlap in (Overlap.QUEUE, Overlap.QUEUE_BY_PRIORITY):
                    assert len(runs.waiting) <= max(runs.policy.max_queued, before)
                    assert not refused or len(runs.waiting) >= runs.policy.max_queued
                elif runs.policy.overlap is Overlap.SKIP_NEW:
                    assert len(runs.waiting) <= before  # from times of another policy
                    unfinished = len(runs.active) + len(runs.waiting)
                    assert not refused or unfinished >= runs.policy.max_active
                else:
                    assert not refused
            case ("end", int()) if runs.active:
                runs.end(sorted(runs.active)[value % len(runs.active)])
            case ("stop", int()) if runs.waiting:
                runs.end(sorted(runs.waiting)[value % len(runs.waiting)])
            case "publish", OverlapPolicy():
                runs.policy = value
                most = max(most, value.max_active)
                unlimited = unlimited or value.overlap is Overlap.ALLOW
                runs.look()
        check(runs)
        assert unlimited or len(runs.active) <= most
    while runs.active:  # whatever waits gets its turn
        runs.end(min(runs.active))
        check(runs)
    assert not runs.waiting
    assert len(set(runs.admitted)) == len(runs.admitted)
    assert not set(runs.admitted) & set(runs.superseded)


@given(
    st.sampled_from([Overlap.QUEUE, Overlap.QUEUE_BY_PRIORITY]),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=12),
)
def test_admission_follows_the_order_of_the_policy(
    overlap: Overlap, max_active: int, wanted: list[tuple[int, int]]
) -> None:
    runs = workflow(overlap, max_active)
    runs.start(*[2] * max_active)
    for priority, days in wanted:
        runs.start(priority, days=days)
    came = list(runs.waiting.values())
    while runs.active:
        runs.end(min(runs.active))
    in_order = sorted(came, key=lambda w: (w.priority, w.logical_time, w.id))
    expected = came if overlap is Overlap.QUEUE else in_order
    assert runs.admitted[max_active:] == [w.id for w in expected]
