"""The life of an attempt on its worker: every pair of state and event."""

import pytest

from shoal.coordination import QueueEntry, TaskClaim
from shoal.core.runs.states import IllegalTransition
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.attempts.lifecycle import (
    HOLDS_SLOT,
    TRANSITIONS,
    AttemptEvent,
    AttemptState,
    next_state,
)
from tests.support.cases import each

S, E = AttemptState, AttemptEvent
#: For each state, events that lead there.
WAYS: dict[AttemptState, list[AttemptEvent]] = {
    S.CLAIMED: [],
    S.GRANTED: [E.GRANT],
    S.PREPARING: [E.GRANT, E.TAKE_SLOT],
    S.CANCELLING: [E.GRANT, E.TAKE_SLOT, E.CANCEL],
    S.LAUNCHING: [E.GRANT, E.TAKE_SLOT, E.LAUNCH],
    S.RUNNING: [E.GRANT, E.TAKE_SLOT, E.LAUNCH, E.START],
    S.ENDED: [E.END],
    S.FORGOTTEN: [E.END, E.FORGET],
}


def claim(number: int = 1) -> TaskClaim:
    return TaskClaim(QueueEntry("default", 2, 7, 2, number, 0), "w", epoch=1, generation=1)


def attempt_in(state: AttemptState) -> HeldAttempt:
    attempt = HeldAttempt(claim())
    for event in WAYS[state]:
        attempt.apply(event)
    assert attempt.state is state
    return attempt


@each(state=S, event=E)
def test_every_pair_follows_the_table_or_is_refused(
    state: AttemptState, event: AttemptEvent
) -> None:
    attempt = attempt_in(state)
    if (state, event) in TRANSITIONS:
        attempt.apply(event)
        assert attempt.state is next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition, match=f"{state} does not allow {event}"):
            attempt.apply(event)
        assert attempt.state is state


@pytest.mark.parametrize("state", S)
def test_an_attempt_is_over_once_it_has_ended_and_never_lives_again(state: AttemptState) -> None:
    over = {S.ENDED, S.FORGOTTEN}
    assert attempt_in(state).over.is_set() == (state in over)
    after = {then for (before, _), then in TRANSITIONS.items() if before is state}
    if state in over:
        assert after <= over
    else:
        assert next_state(state, E.END) is S.ENDED


@pytest.mark.parametrize("state", S)
def test_grant_is_remembered_after_the_end(state: AttemptState) -> None:
    attempt = attempt_in(state)
    was_granted = E.GRANT in WAYS[state]
    assert attempt.granted == was_granted
    if not attempt.over.is_set():
        attempt.apply(E.END)
    assert attempt.granted == was_granted


@pytest.mark.parametrize("state", sorted(set(S) - {S.ENDED, S.FORGOTTEN}))
async def test_slots_in_use_are_those_of_the_states_that_hold_one(state: AttemptState) -> None:
    attempts = HeldAttempts(2)
    attempt = attempts.add(claim())
    for event in WAYS[state]:
        if event is E.TAKE_SLOT:
            attempts.take_slot(attempt)
        else:
            attempt.apply(event)
    assert attempts.occupied == (state in HOLDS_SLOT)
    attempts.end(attempt)
    attempts.end(attempt)
    assert (attempts.occupied, len(attempts.live), len(attempts)) == (0, 0, 1)
    attempts.forget(attempt)
    attempts.forget(attempt)
    assert (attempt.state, len(attempts)) == (S.FORGOTTEN, 0)
