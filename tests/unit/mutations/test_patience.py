"""Deadlines are as short as a killer's own time allows, and no shorter."""

from tests.mutations.patience import LADDER, MARGIN, Patience, described, longer

FIRST, SECOND, *_, LAST = LADDER


def test_who_passes_quickly_enough_keeps_its_deadline() -> None:
    assert longer(FIRST, 0.1) is None
    assert longer(FIRST, FIRST / MARGIN) is None


def test_who_has_too_little_to_spare_gets_the_shortest_deadline_that_fits() -> None:
    assert longer(FIRST, FIRST / MARGIN + 0.01) == SECOND
    assert longer(FIRST, SECOND / MARGIN) == SECOND
    assert longer(FIRST, SECOND / MARGIN + 0.01) == LADDER[2]
    assert longer(FIRST, FIRST - 0.01) == LADDER[2]
    assert longer(SECOND, LAST) == LAST


def test_who_did_not_pass_gets_more_and_more_time() -> None:
    tried = [FIRST]
    while (deadline_s := longer(tried[-1], None)) is not None:
        tried.append(deadline_s)
    assert tuple(tried) == LADDER


def test_nothing_is_longer_than_the_deadline_of_every_test_run() -> None:
    assert longer(LAST, LAST - 0.01) is None


def test_deadlines_are_counted() -> None:
    found = [Patience(10.0, 1.0), Patience(40.0, 9.0), Patience(10.0, 0.1)]
    assert described(found) == "2 with waits of 10 s, 1 with waits of 40 s"


def test_the_ladder_rises() -> None:
    assert list(LADDER) == sorted(set(LADDER))
