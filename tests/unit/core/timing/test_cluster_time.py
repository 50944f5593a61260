"""Which clock is believed, when they differ."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.timing.cluster_time import (
    LONGEST_AGE_S,
    LONGEST_TRIP_S,
    SETTLE_S,
    STEP_S,
    UNCONFIRMED_S,
    ClockReading,
    ClusterTime,
)

HOUR_S = 3600.0
START_S = 1_800_000_000.0


@dataclass
class Node:
    """A node whose clock may be wrong, and other clocks that it asks every ten seconds."""

    own_off_s: float = 0.0
    others: dict[str, float] = field(default_factory=lambda: {"ensemble": 0.0, "database": 0.0})
    elapsed_s: float = 5.0
    is_synchronised: bool = True

    def __post_init__(self) -> None:
        self.time = ClusterTime(self.shown)
        self.compare()

    @property
    def true_s(self) -> float:
        return START_S + self.elapsed_s

    @property
    def shown(self) -> ClockReading:
        return ClockReading(self.true_s + self.own_off_s, self.elapsed_s)

    def compare(self) -> None:
        for name, off_s in self.others.items():
            self.time.observe(name, self.true_s + off_s, self.shown, self.shown)
        self.time.compare(self.shown, is_synchronised=self.is_synchronised)

    def pass_time(self, for_s: float) -> float:
        """Let time pass, second by second; return how far the time was off at most."""
        worst_s = 0.0
        for second in range(int(for_s)):
            self.elapsed_s += 1
            if second % 10 == 0:
                self.compare()
            worst_s = max(worst_s, abs(self.off_s))
        return worst_s

    @property
    def off_s(self) -> float:
        return self.time.now_s(self.shown) - self.true_s


def test_own_clock_is_the_time_while_another_one_agrees() -> None:
    node = Node(own_off_s=0.4, others={"ensemble": 0.0})
    assert node.time.now_s(node.shown) == node.shown.wall_s
    assert not node.time.differences(node.shown)


def test_own_clock_that_jumps_changes_nothing_not_even_for_a_moment() -> None:
    node = Node()
    for jump_s in (HOUR_S, -HOUR_S, 10.0, -10.0, 86400.0 * 365):
        node.own_off_s = jump_s
        assert abs(node.off_s) < 0.1
        assert node.pass_time(120) < 0.1
        assert node.time.differences(node.shown).keys() == {"own"}
        node.own_off_s = 0.0
        assert node.pass_time(60) < 0.1
    assert not node.time.differences(node.shown)


def test_own_clock_that_is_wrong_from_the_start_does_not_count() -> None:
    node = Node(own_off_s=-HOUR_S)
    assert node.pass_time(300) < 0.1


def test_most_clocks_count_although_the_own_one_was_believed_before() -> None:
    node = Node(own_off_s=HOUR_S, others={"ensemble": HOUR_S, "database": 0.0})
    assert node.off_s == HOUR_S
    node.pass_time(2 * SETTLE_S)
    node.others["ensemble"] = 0.0  # its leader is another one now
    node.pass_time(SETTLE_S + 21)
    assert abs(node.off_s) < 0.1


def test_own_clock_that_drifts_is_left_when_it_differs() -> None:
    node, worst_s = Node(), 0.0
    for _ in range(600):
        node.own_off_s += 0.1  # a tenth too fast
        worst_s = max(worst_s, node.pass_time(1))
    assert worst_s <= 2 * STEP_S


def test_database_or_ensemble_that_jumps_changes_nothing() -> None:
    for name in ("ensemble", "database"):
        node = Node()
        node.others[name] = HOUR_S
        assert node.pass_time(300) < 0.1
        assert node.time.differences(node.shown).keys() == {name}


def test_one_clock_for_all_that_jumps_and_comes_back_changes_nothing() -> None:
    """A laptop: the ensemble runs on it, the database is a file."""
    node = Node(others={"ensemble": 0.0})
    node.own_off_s = node.others["ensemble"] = HOUR_S
    assert node.pass_time(SETTLE_S - 10) < 0.1
    node.own_off_s = node.others["ensemble"] = 0.0
    assert node.pass_time(2 * SETTLE_S) < 0.1


def test_one_clock_for_all_that_was_set_counts_after_a_while() -> None:
    for jump_s in (HOUR_S, -HOUR_S):
        node = Node(others={"ensemble": 0.0})
        node.own_off_s = node.others["ensemble"] = jump_s
        node.pass_time(SETTLE_S + 21)
        assert node.off_s == jump_s
        assert not node.time.differences(node.shown)


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S, 30 * 86_400.0, 10.0])
@pytest.mark.parametrize("database", [True, False])
def test_all_clocks_of_a_machine_that_are_wrong_for_hours_change_nothing(
    jump_s: float, database: bool
) -> None:
    """The clock was set by hand: no time service keeps it, and no other clock confirms it."""
    node = Node(others={"ensemble": 0.0, **({"database": 0.0} if database else {})})
    node.is_synchronised = False
    node.pass_time(60)
    node.own_off_s = jump_s
    node.others = dict.fromkeys(node.others, jump_s)
    assert node.pass_time(5 * HOUR_S) < 0.1
    assert node.time.differences(node.shown).keys() == {"own", *node.others}
    node.own_off_s, node.others = 0.0, dict.fromkeys(node.others, 0.0)
    assert node.pass_time(HOUR_S) < 0.1
    assert not node.time.differences(node.shown)


def test_unconfirmed_time_counts_when_it_has_held_for_a_day() -> None:
    node = Node(others={"ensemble": 0.0}, is_synchronised=False)
    node.pass_time(60)
    node.own_off_s = node.others["ensemble"] = HOUR_S
    assert node.pass_time(UNCONFIRMED_S - 60) < 0.1
    node.pass_time(120)
    assert node.off_s == HOUR_S


def test_time_service_confirms_a_new_time() -> None:
    node = Node(others={"ensemble": 0.0}, is_synchronised=False)
    node.pass_time(60)
    node.own_off_s = node.others["ensemble"] = HOUR_S
    assert node.pass_time(600) < 0.1
    node.is_synchronised = True
    node.pass_time(11)
    assert node.off_s == HOUR_S


def test_database_and_ensemble_on_one_machine_that_jump_change_nothing_for_hours() -> None:
    """The masters are elsewhere, and their own clocks are right."""
    node = Node()
    node.pass_time(60)
    node.others = {"ensemble": HOUR_S, "database": HOUR_S}
    assert node.pass_time(5 * HOUR_S) < 0.1
    node.others = {"ensemble": 0.0, "database": 0.0}
    assert node.pass_time(600) < 0.1


@pytest.mark.parametrize("name", ["ensemble", "database"])
@pytest.mark.parametrize("alone", [True, False])
def test_one_other_clock_that_is_wrong_for_hours_changes_nothing(name: str, alone: bool) -> None:
    node = Node(others={name: 0.0} if alone else {"ensemble": 0.0, "database": 0.0})
    node.is_synchronised = False
    node.pass_time(60)
    for jump_s in (HOUR_S, -HOUR_S):
        node.others[name] = jump_s
        assert node.pass_time(3 * HOUR_S) < 0.1


def test_own_clock_counts_without_any_other() -> None:
    node = Node(own_off_s=-HOUR_S, others={})
    assert node.off_s == -HOUR_S


def test_two_clocks_that_differ_let_the_known_time_go_on() -> None:
    node = Node(others={"ensemble": 0.0})
    node.others["ensemble"] = HOUR_S
    assert node.pass_time(300) < 0.1
    node.others["ensemble"] = 0.0
    node.own_off_s = HOUR_S
    assert node.pass_time(300) < 0.1


def test_other_clocks_that_fall_silent_are_forgotten_after_an_hour() -> None:
    node = Node()
    node.others = {}
    node.own_off_s = 10.0
    assert node.pass_time(LONGEST_AGE_S - 60) < 0.1
    node.pass_time(200)
    assert node.off_s == 10.0


def test_late_answer_says_nothing() -> None:
    time = ClusterTime(ClockReading(START_S, 0.0))
    took_s = LONGEST_TRIP_S + 0.01
    sent, answered = ClockReading(START_S, 0.0), ClockReading(START_S + took_s, took_s)
    assert not time.observe("database", START_S + HOUR_S, sent, answered)
    time.compare(answered)
    assert not time.differences(answered)


@given(
    wrong=st.sampled_from(["own", "ensemble", "database"]),
    jumps=st.lists(st.floats(-1e7, 1e7), min_size=1, max_size=8),
)
def test_one_wrong_clock_of_three_never_counts(wrong: str, jumps: list[float]) -> None:
    node = Node()
    for jump_s in jumps:
        if wrong == "own":
            node.own_off_s = jump_s
        else:
            node.others[wrong] = jump_s
        # A clock that is off by less than a step may be followed as far as that.
        assert node.pass_time(45) <= 2 * STEP_S
