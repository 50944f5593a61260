"""The judge of killed tasks finds every offence that it knows, and none in honest cases.

A rule that finds nothing makes every run of `make kills` clean.
"""

from dataclasses import replace

import pytest

from tests.kills.judging import MOST_LOSSES, AttemptRow, Evidence, offences
from tests.kills.plan import Case, Phase, Target

CASE = Case("SSH", 7, Target.RUNNER, Phase.RUNNING, 2.0, 0.5, idempotent=False, stubborn=False)
ONCE = "the process was killed; idempotent: true says that it may be"
KILLED, DONE = AttemptRow(1, "FAILED", "ended by signal 9"), AttemptRow(2, "SUCCEEDED")
HONEST = Evidence(
    CASE,
    killed="process 8",
    state="SUCCEEDED",
    attempts=[KILLED, DONE],
    doubles=[],
    left=[],
    effects=1,
)


def lost(count: int) -> list[AttemptRow]:
    return [AttemptRow(number, "LOST") for number in range(1, count + 1)]


@pytest.mark.parametrize(
    "seen",
    [
        HONEST,
        replace(HONEST, attempts=[AttemptRow(1, "LOST"), DONE], effects=2),
        replace(HONEST, effects=-1),
        replace(HONEST, state="FAILED", attempts=[AttemptRow(1, "FAILED", ONCE)]),
        replace(HONEST, state="FAILED", attempts=lost(1), may_stay_lost=True),
        replace(HONEST, state="FAILED", attempts=lost(MOST_LOSSES + 1)),
        replace(
            HONEST,
            case=replace(CASE, target=Target.CANCEL),
            state="STOPPED",
            attempts=[AttemptRow(1, "KILLED")],
            effects=0,
        ),
        replace(HONEST, effects=2, declares=False),
        replace(HONEST, gone_s=4.9),
        replace(HONEST, gone_s=9.0, alone=False),
        replace(HONEST, gone_s=9.0, case=replace(CASE, target=Target.WORKER)),
    ],
)
def test_honest_cases_are_clean(seen: Evidence) -> None:
    assert offences(seen) == []


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (replace(HONEST, doubles=["1 and 2"]), "two live jobs: 1 and 2"),
        (replace(HONEST, left=["1"]), "left over: 1"),
        (
            replace(HONEST, attempts=[AttemptRow(1, "RUNNING"), DONE]),
            "attempt 1 is RUNNING although its run has ended",
        ),
        (replace(HONEST, attempts=[AttemptRow(1, "SUCCEEDED"), DONE]), "two attempts succeeded"),
        (replace(HONEST, attempts=[KILLED]), "the run succeeded, its last attempt did not"),
        (replace(HONEST, state="STOPPED"), "stopped, and nobody asked for it"),
        (
            replace(HONEST, state="FAILED", attempts=[KILLED]),
            "the run failed: ended by signal 9",
        ),
        (replace(HONEST, state="FAILED", attempts=lost(1)), "the run failed: "),
        (
            replace(
                HONEST,
                case=replace(CASE, idempotent=True),
                state="FAILED",
                attempts=[AttemptRow(1, "FAILED", ONCE)],
            ),
            f"the run failed: {ONCE}",
        ),
        (replace(HONEST, state="RUNNING after 9 s"), "the run is RUNNING after 9 s"),
        (replace(HONEST, effects=0), "succeeded, and the work was not done"),
        (replace(HONEST, effects=2), "done 2 times, and it is not idempotent"),
        (
            replace(HONEST, attempts=[*lost(1), DONE], effects=2, may_stay_lost=True),
            "done 2 times, and it is not idempotent",
        ),
        (replace(HONEST, received=2), "begun 2 times, and it is not idempotent"),
        (
            replace(HONEST, gone_s=5.1),
            "late: the job was gone 5.10 s after the kill, not within 5 s",
        ),
    ],
)
def test_each_offence_is_found(seen: Evidence, found: str) -> None:
    assert found in offences(seen)


@pytest.mark.parametrize(
    ("stubborn", "bounds", "gone_s", "late"),
    [
        (False, True, 0.9, False),
        (False, True, 1.1, True),
        (True, True, 2.9, False),
        (True, True, 3.1, True),
        (False, False, 9.0, False),
    ],
)
def test_time_of_a_stop(stubborn: bool, bounds: bool, gone_s: float, late: bool) -> None:
    case = replace(CASE, target=Target.CANCEL, stubborn=stubborn)
    seen = replace(HONEST, case=case, bounds_cancel=bounds, swallows=True, gone_s=gone_s)
    assert any(text.startswith("late") for text in offences(seen)) is late


def test_a_stubborn_job_has_no_more_time_where_it_cannot_catch_its_cancellation() -> None:
    case = replace(CASE, target=Target.CANCEL, stubborn=True)
    seen = replace(HONEST, case=case, bounds_cancel=True, gone_s=1.1)
    assert any(text.startswith("late") for text in offences(seen))
