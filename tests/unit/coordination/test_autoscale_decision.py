"""Scaling: up at once, down after a while and step by step, never below what runs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.coordination.autoscale import Observation, ScalingSettings, ScalingState, decide

SETTINGS = ScalingSettings(
    min_count=1, max_count=10, slots=4, max_step_up=3, max_step_down=2, cool_down_s=60
)

settings_of_any_kind = st.builds(
    lambda low, more, **rest: ScalingSettings(min_count=low, max_count=low + more, **rest),
    low=st.integers(0, 5),
    more=st.integers(0, 30),
    slots=st.integers(1, 8),
    max_step_up=st.integers(1, 10),
    max_step_down=st.integers(1, 10),
    cool_down_s=st.floats(0, 300),
    tolerance=st.floats(0, 0.5),
)
loads = st.builds(Observation, st.integers(0, 300), st.integers(0, 300))
# Seconds since the look before, and what was seen.
histories = st.lists(st.tuples(st.floats(0.1, 100), loads), min_size=1, max_size=60)


def replay(
    settings: ScalingSettings, history: list[tuple[float, Observation]], start: int
) -> list[tuple[float, Observation, int, int]]:
    """Return time, observation, count before and count after of each decision."""
    state, now_s, steps = ScalingState(start), 0.0, []
    for pause_s, seen in history:
        now_s += pause_s
        before = state.count
        state, count = decide(state, seen, settings, now_s)
        assert state.count == count
        steps.append((now_s, seen, before, count))
    return steps


def needed(settings: ScalingSettings, seen: Observation) -> int:
    work = -(-(seen.backlog + seen.running) // settings.slots)
    return min(max(work, settings.min_count), settings.max_count)


# ---------------------------------------------------------------------- always


@given(settings_of_any_kind, histories, st.integers(0, 40))
def test_steps_and_limits_are_kept(
    settings: ScalingSettings, history: list[tuple[float, Observation]], start: int
) -> None:
    for _, _, before, after in replay(settings, history, start):
        assert after <= max(before, settings.max_count)
        assert after >= min(before, settings.min_count)
        assert after <= max(before + settings.max_step_up, settings.min_count)
        assert after >= before - settings.max_step_down


@given(settings_of_any_kind, histories, st.integers(0, 40))
def test_nobody_who_works_is_sent_away(
    settings: ScalingSettings, history: list[tuple[float, Observation]], start: int
) -> None:
    for _, seen, before, after in replay(settings, history, start):
        if after < before:
            assert after * settings.slots >= seen.running
            assert after >= needed(settings, seen)


@given(settings_of_any_kind, histories, st.integers(0, 40))
def test_more_work_than_workers_adds_some_at_once(
    settings: ScalingSettings, history: list[tuple[float, Observation]], start: int
) -> None:
    for _, seen, before, after in replay(settings, history, start):
        if needed(settings, seen) > before:
            assert after > before


@given(settings_of_any_kind, histories, st.integers(0, 40))
def test_workers_go_only_after_a_whole_cool_down_of_too_little_work(
    settings: ScalingSettings, history: list[tuple[float, Observation]], start: int
) -> None:
    steps = replay(settings, history, start)
    for index, (now_s, _, before, after) in enumerate(steps):
        if after >= before:
            continue
        # Backwards until the last step in which something moved or nobody was idle.
        since_s = now_s
        for at_s, seen, was, became in reversed(steps[:index]):
            if became > was or needed(settings, seen) > was * (1 - settings.tolerance):
                break
            since_s = at_s
            if became < was:
                break
        assert now_s - since_s >= settings.cool_down_s - 1e-9


@given(settings_of_any_kind, loads, st.integers(0, 40))
def test_constant_load_ends_in_a_constant_count(
    settings: ScalingSettings, load: Observation, start: int
) -> None:
    history = [(settings.cool_down_s + 1, load)] * 120
    counts = [after for *_, after in replay(settings, history, start)]
    assert counts[-1] == counts[-2]
    assert counts[-1] >= min(needed(settings, load), settings.max_count)
    idle = counts[-1] - max(needed(settings, load), -(-load.running // settings.slots))
    assert idle <= settings.tolerance * counts[-1]


# ---------------------------------------------------------------------- cases


def test_first_decision_starts_the_least_number_even_without_work() -> None:
    settings = replace(SETTINGS, min_count=5)
    assert decide(ScalingState(0), Observation(0, 0), settings, 0)[1] == 5


def test_backlog_is_divided_among_slots_and_added_in_steps() -> None:
    counts = [after for *_, after in replay(SETTINGS, [(1, Observation(30, 2))] * 4, start=1)]
    assert counts == [4, 7, 8, 8]  # 32 units in 4 slots each


def test_workers_go_two_at_a_time_each_a_minute_after_the_last() -> None:
    history = [(0.0, Observation(0, 8))] + [(30.0, Observation(0, 8))] * 8
    counts = [after for *_, after in replay(SETTINGS, history, start=7)]
    assert counts == [7, 7, 5, 5, 3, 3, 2, 2, 2]


def test_a_short_burst_begins_the_cool_down_anew() -> None:
    calm, burst = Observation(0, 4), Observation(24, 4)
    history = [(30.0, calm), (30.0, burst), (30.0, calm), (30.0, calm), (30.0, calm)]
    counts = [after for *_, after in replay(SETTINGS, history, start=7)]
    assert counts == [7, 7, 7, 7, 5]


def test_the_busiest_moment_of_the_cool_down_counts() -> None:
    history = [(30.0, Observation(0, 4)), (30.0, Observation(0, 24)), (30.0, Observation(0, 4))]
    settings = replace(SETTINGS, max_step_down=9)
    counts = [after for *_, after in replay(settings, history, start=8)]
    assert counts == [8, 8, 6]


def test_a_small_swing_moves_nothing() -> None:
    settings = replace(SETTINGS, max_count=100, tolerance=0.2, slots=1, cool_down_s=0)
    assert decide(ScalingState(50), Observation(0, 45), settings, 0)[1] == 50
    assert decide(ScalingState(50), Observation(0, 40), settings, 0)[1] == 48


def test_lowered_limit_sends_nobody_away_who_works() -> None:
    settings = replace(SETTINGS, max_count=2, cool_down_s=0, max_step_down=9)
    assert decide(ScalingState(8), Observation(0, 20), settings, 0)[1] == 5


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"min_count": 3, "max_count": 2}, "max_count 2"),
        ({"min_count": -1}, "min_count -1"),
        ({"slots": 0}, "slots"),
        ({"max_step_down": 0}, "max_step_down"),
        ({"cool_down_s": -1.0}, "cool_down_s -1"),
        ({"tolerance": 1.0}, "tolerance 1"),
    ],
)
def test_settings_that_contradict_are_refused(wrong: dict[str, float], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        ScalingSettings(**wrong)  # type: ignore[arg-type]  # wrong on purpose
