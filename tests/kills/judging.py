"""What is wrong with a case: judged by what was seen outside Shoal, and by the rows of its run."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.kills.plan import Case, Target

MOST_LOSSES = 10  # after one more the task fails: docs/dispatch.md
GRACE_S = 1.0  # kill_grace_s of the suite's workers
RUNNER_BOUND_S = 5.0
CANCEL_BOUND_S, SWALLOWED_BOUND_S = 1.0, GRACE_S + 2.0
_FINAL = frozenset({"SUCCEEDED", "FAILED", "KILLED", "LOST"})


@dataclass(frozen=True)
class AttemptRow:
    """One attempt as Shoal has it."""

    number: int
    state: str
    reason: str = ""


@dataclass(frozen=True)
class Evidence:
    """All that is known of a case when everything is quiet."""

    case: Case
    killed: str  # what was, "" if it was over before
    state: str  # of the run
    attempts: Sequence[AttemptRow]
    doubles: Sequence[str]  # jobs that were alive together
    left: Sequence[str]  # jobs that are alive
    effects: int  # how often the work was done; -1: its type has none to count
    received: int | None = None  # how often it was begun, if the other side knows
    # Whether the type asks if its work may be done twice: of all others another attempt may follow
    # whenever the task allows retries.
    declares: bool = True
    may_stay_lost: bool = False
    gone_s: float | None = None  # from the kill to the end of the job that was alive then
    alone: bool = True  # nothing that other cases need was killed meanwhile
    bounds_cancel: bool = False
    swallows: bool = False  # a stubborn job of this kind catches its cancellation


def offences(seen: Evidence) -> list[str]:
    """Return everything that is wrong, in words."""
    found = [f"two live jobs: {double}" for double in seen.doubles]
    found += [f"left over: {job}" for job in seen.left]
    found += _ending(seen)
    found += _effects(seen)
    found += _times(seen)
    return found


def _ending(seen: Evidence) -> list[str]:
    found = [
        f"attempt {row.number} is {row.state} although its run has ended"
        for row in seen.attempts
        if row.state not in _FINAL
    ]
    if sum(row.state == "SUCCEEDED" for row in seen.attempts) > 1:
        found.append("two attempts succeeded")
    match seen.state:
        case "SUCCEEDED":
            if not seen.attempts or seen.attempts[-1].state != "SUCCEEDED":
                found.append("the run succeeded, its last attempt did not")
        case "STOPPED":
            if seen.case.target is not Target.CANCEL:
                found.append("stopped, and nobody asked for it")
        case "FAILED":
            if not _may_fail(seen):
                last = seen.attempts[-1].reason if seen.attempts else "no attempt"
                found.append(f"the run failed: {last}")
        case state:
            found.append(f"the run is {state}")
    return found


def _may_fail(seen: Evidence) -> bool:
    losses = sum(row.state == "LOST" for row in seen.attempts)
    return losses > MOST_LOSSES or (
        seen.declares and not seen.case.idempotent and bool(seen.attempts) and _nobody_knows(seen)
    )


def _nobody_knows(seen: Evidence) -> bool:
    """Return whether the last attempt may have done its work, so that none may follow."""
    last = seen.attempts[-1]
    if last.state == "LOST":
        return seen.may_stay_lost
    return last.state == "FAILED" and "idempotent: true" in last.reason


def _effects(seen: Evidence) -> list[str]:
    if seen.effects < 0:
        return []
    found = []
    if seen.state == "SUCCEEDED" and seen.effects == 0:
        found.append("succeeded, and the work was not done")
    if seen.declares and not seen.case.idempotent:
        # A loss is followed by another attempt, unless the type says that it may not be.
        losses = sum(row.state == "LOST" for row in seen.attempts)
        most = 1 if seen.may_stay_lost else 1 + losses
        if seen.effects > most:
            found.append(f"done {seen.effects} times, and it is not idempotent")
        if seen.received is not None and seen.received > 1:
            found.append(f"begun {seen.received} times, and it is not idempotent")
    return found


def _times(seen: Evidence) -> list[str]:
    bound = _bound_s(seen)
    if seen.gone_s is None or bound is None or not seen.alone or seen.gone_s <= bound:
        return []
    return [f"late: the job was gone {seen.gone_s:.2f} s after the kill, not within {bound:g} s"]


def _bound_s(seen: Evidence) -> float | None:
    match seen.case.target:
        case Target.RUNNER:
            return RUNNER_BOUND_S
        case Target.CANCEL if seen.bounds_cancel:
            swallowed = seen.swallows and seen.case.stubborn
            return SWALLOWED_BOUND_S if swallowed else CANCEL_BOUND_S
        case _:
            return None
