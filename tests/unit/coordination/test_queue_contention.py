"""Claimers who share the head of a queue out take different entries, and leave none behind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.coordination.queue.contention import ClaimerPlace, choose, turn
from shoal.coordination.queue.entry import QueueEntry
from shoal.coordination.queue.survey import _rounded

places = st.integers(1, 200).flatmap(
    lambda claimers: st.builds(ClaimerPlace, st.integers(0, claimers - 1), st.just(claimers))
)


def entry(task: int) -> QueueEntry:
    return QueueEntry("g", 2, task // 50, 2, task, 0)


windows = st.lists(st.integers(0, 10**14 - 1), unique=True, max_size=60).map(
    lambda tasks: sorted(entry(task % 10**13) for task in tasks)
)


@given(windows, st.integers(1, 30))
def test_every_entry_is_first_the_turn_of_one_claimer(
    window: list[QueueEntry], claimers: int
) -> None:
    for each in window:
        turns = [turn(each, ClaimerPlace(rank, claimers)) for rank in range(claimers)]
        assert sorted(turns) == list(range(claimers))


@given(windows, places, st.integers(1, 70))
def test_choice_is_in_order_and_ours_if_anything_is(
    window: list[QueueEntry], place: ClaimerPlace, wanted: int
) -> None:
    choice = choose(window, wanted, place, {})
    ours = [each for each in window if turn(each, place) == 0]
    if ours:
        assert choice == (ours[:wanted], True)
    else:
        assert not choice.ours
        assert len(choice.entries) == min(wanted, len(window))
        turns = [turn(each, place) for each in choice.entries]
        assert turns == sorted(turn(each, place) for each in window)[:wanted]


@given(windows, st.integers(1, 70))
def test_one_claimer_chooses_exactly_the_first(window: list[QueueEntry], wanted: int) -> None:
    assert choose(window, wanted, ClaimerPlace(0, 1), {}).entries == window[:wanted]


@pytest.mark.parametrize("claimers", [2, 3, 8, 20])
def test_shares_are_even(claimers: int) -> None:
    window = [entry(task) for task in range(5_000, 6_000)]
    shares = [
        len(choose(window, 1000, ClaimerPlace(rank, claimers), {}).entries)
        for rank in range(claimers)
    ]
    assert sum(shares) == 1000
    assert max(shares) < 1.3 * 1000 / claimers
    assert min(shares) > 0.7 * 1000 / claimers


@given(st.integers(0, 10**13), st.integers(1, 200))
def test_entry_that_is_left_lying_is_open_to_more_and_more_claimers(
    task: int, claimers: int
) -> None:
    each = entry(task)
    open_to = [
        sum(
            choose([each], 1, ClaimerPlace(rank, claimers), {task: passed}).ours
            for rank in range(claimers)
        )
        for passed in range(12)
    ]
    assert open_to[:2] == [1, 1]
    assert open_to == sorted(open_to)
    assert open_to[1 + (claimers - 1).bit_length()] == claimers


@pytest.mark.parametrize(
    ("number", "rounded"),
    [(0.0, 0), (7.0, 7), (1234.5, 1200), (98_765.0, 99_000), (999_500.0, 1_000_000)],
)
def test_reckoned_numbers_look_rough(number: float, rounded: int) -> None:
    assert _rounded(number) == rounded
