"""What a backfill does next: a true sliding window over its dates.

Never more than ``parallel`` runs are under way, and the next one starts when any of them ends.
A run that is quarantined takes no place; once it is repaired it counts again, and none starts until
there is room.
Everything is derived from the stored runs and from what has become of their newest tries, so it
can be computed again at any time, by any master.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from shoal.core.backfill.request import (
    BackfillRunSignal,
    BackfillRunState,
    BackfillSignal,
    BackfillState,
    next_backfill_state,
    next_run_state,
)
from shoal.core.runs.commands import CommandState
from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState

_S, _G = BackfillRunState, BackfillRunSignal
ENDED_WELL = frozenset({_S.SUCCEEDED, _S.SKIPPED})
ENDED_BADLY = frozenset({_S.FAILED, _S.CANCELLED})


@dataclass(frozen=True)
class BackfillRun:
    """One date of a backfill for one workflow. ``position`` is its place in the order.

    ``tries`` counts the runs that were asked for; ``command_id`` and ``instance_id`` are those of
    the newest one.
    """

    position: int
    workflow_id: int
    logical_time: datetime
    state: BackfillRunState = BackfillRunState.WAITING
    tries: int = 0
    command_id: int | None = None
    instance_id: int | None = None
    reason: str | None = None

    def after(self, signal: BackfillRunSignal, reason: str | None = None) -> "BackfillRun":
        """Return it after ``signal``. Raises IllegalTransition."""
        return replace(self, state=next_run_state(self.state, signal), reason=reason)


@dataclass(frozen=True)
class DayOutcome:
    """What has become of the newest try: of its START command, then of the instance."""

    command: CommandState
    instance_id: int | None = None
    instance: WorkflowState | None = None
    partition: int | None = None  # of the instance
    reason: str | None = None  # why the command was refused, or why the instance ended so
    is_quarantined: bool = False  # the instance: nothing happens in it until it is repaired

    @property
    def is_over(self) -> bool:
        """Whether no run of it is open, and none will be."""
        if self.command is CommandState.REFUSED:
            return True
        return self.instance in FINISHED_WORKFLOW


WaitsFor = Callable[[BackfillRun], Collection[int]]


@dataclass(frozen=True)
class WindowStep:
    """What is to be done. ``changed`` holds every run that is another one than before.

    ``start``: positions for which a run is to be asked for now; they are in ``changed`` as
    STARTED, one more try. ``state``: the backfill's own new state, None if it stays.
    """

    changed: Mapping[int, BackfillRun] = field(default_factory=dict)
    start: tuple[int, ...] = ()
    state: BackfillState | None = None
    reason: str | None = None


def window(
    state: BackfillState,
    runs: Sequence[BackfillRun],
    outcomes: Mapping[int, DayOutcome],
    *,
    parallel: int,
    stop_after: int | None,
    waits_for: WaitsFor,
    unseen: Mapping[BackfillRunState, int] | None = None,
) -> WindowStep:
    """Return the next step of a backfill that has not ended.

    ``runs``, in their order: those that are STARTED, the first ones that are WAITING, and all
    that ``waits_for`` names; ``unseen``: how many others there are in each state. ``outcomes``: by
    position, of those that are STARTED; ``stop_after``: the number of failures after which no
    other date starts.
    """
    others = Counter(unseen)
    now = {run.position: run for run in runs}
    cancelling = state is BackfillState.CANCELLING
    for run in runs:
        # Without an outcome another request has started it meanwhile, and owns it.
        if run.state is _S.STARTED and run.position in outcomes:
            now[run.position] = follow(run, outcomes[run.position], cancelling)
    _give_up(now, cancelling, stop_after, others[_S.FAILED])
    start: list[int] = []
    if state is BackfillState.RUNNING:
        stuck = {position for position, outcome in outcomes.items() if outcome.is_quarantined}
        start = _next_ones(now, parallel, waits_for, stuck)
    for position in start:
        now[position] = replace(now[position].after(_G.START), tries=now[position].tries + 1)
    changed = {run.position: now[run.position] for run in runs if now[run.position] != run}
    signal, reason = _end(state, others + Counter(run.state for run in now.values()))
    after = None if signal is None else next_backfill_state(state, signal)
    return WindowStep(changed, tuple(start), after, reason)


def follow(run: BackfillRun, outcome: DayOutcome, cancelling: bool = False) -> BackfillRun:
    """Return a STARTED run as its newest try has left it."""
    run = replace(run, instance_id=outcome.instance_id)
    if outcome.command is CommandState.REFUSED:
        return run.after(_G.FAIL, f"could not be started: {outcome.reason}")
    match outcome.instance:
        case WorkflowState.SUCCEEDED:
            return run.after(_G.SUCCEED)
        case WorkflowState.FAILED:
            return run.after(_G.FAIL, outcome.reason)
        case WorkflowState.STOPPED if cancelling:
            return run.after(_G.CANCEL, "stopped when the backfill was cancelled")
        case WorkflowState.STOPPED:
            return run.after(_G.FAIL, outcome.reason or "its run was stopped")
        case _:
            return run


def retried(
    runs: Sequence[BackfillRun], outcomes: Mapping[int, DayOutcome]
) -> dict[int, BackfillRun]:
    """Return the runs that another try changes: all that failed or were cancelled.

    One whose instance was recovered or resumed in the meantime is taken as it is now.
    ``outcomes``: by position, of those that were tried before.
    """
    changed = {}
    for run in runs:
        if run.state not in ENDED_BADLY:
            continue
        outcome = outcomes.get(run.position)
        if outcome is not None and outcome.instance is WorkflowState.SUCCEEDED:
            changed[run.position] = run.after(_G.SUCCEED)
        elif outcome is not None and not outcome.is_over:
            changed[run.position] = run.after(_G.FOLLOW)
        else:
            changed[run.position] = run.after(_G.RETRY)
    return changed


def _give_up(
    now: dict[int, BackfillRun], cancelling: bool, stop_after: int | None, failures: int
) -> None:
    """Cancel what waits if the backfill is cancelled, or too many runs have failed."""
    failures += sum(run.state is _S.FAILED for run in now.values())
    if cancelling:
        reason = "not started: the backfill was cancelled"
    elif stop_after is not None and failures >= stop_after:
        reason = f"not started: the backfill stops after {_count(failures, 'failure')}"
    else:
        return
    for run in now.values():
        if run.state is _S.WAITING:
            now[run.position] = run.after(_G.CANCEL, reason)


def _next_ones(
    now: dict[int, BackfillRun], parallel: int, waits_for: WaitsFor, stuck: Collection[int]
) -> list[int]:
    """Return what starts now; what can no longer start is settled in ``now``.

    ``stuck``: the positions of runs that take no place in the window.
    """
    while True:
        started = [run.position for run in now.values() if run.state is _S.STARTED]
        under_way = len(started)
        taken = sum(position not in stuck for position in started)
        found, given_up = _first_ones(now, parallel - taken, waits_for)
        waiting = [run for run in now.values() if run.state is _S.WAITING]
        if found or under_way or not waiting:
            return found
        if not given_up:  # nothing will ever change by itself
            for run in waiting:
                reason = "could not be started: dates of this backfill wait for each other"
                now[run.position] = run.after(_G.FAIL, reason)


def _first_ones(
    now: dict[int, BackfillRun], room: int, waits_for: WaitsFor
) -> tuple[list[int], bool]:
    """Return the first ``room`` that can start, and whether others were given up on the way."""
    found: list[int] = []
    given_up = False
    for run in [run for run in now.values() if run.state is _S.WAITING]:
        if len(found) >= room:
            break
        others = [now[position] for position in waits_for(run)]
        if bad := next((other for other in others if other.state in ENDED_BADLY), None):
            now[run.position] = run.after(_G.CANCEL, f"not started: {_blamed(bad)}")
            given_up = True
        elif all(other.state in ENDED_WELL for other in others):
            found.append(run.position)
    return found, given_up


def _blamed(bad: BackfillRun) -> str:
    moment = bad.logical_time.isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"it depends on number {bad.position}, for {moment}, which did not succeed"


def _end(
    state: BackfillState, counts: Counter[BackfillRunState]
) -> tuple[BackfillSignal | None, str | None]:
    """Return how the backfill ends, and why; None while something waits or runs."""
    if counts[_S.STARTED] or counts[_S.WAITING]:
        return None, None
    if state is BackfillState.CANCELLING:
        return BackfillSignal.SETTLE, None
    if not counts[_S.FAILED] and not counts[_S.CANCELLED]:
        return BackfillSignal.SUCCEED, None
    reason = f"{counts[_S.FAILED]} of {_count(counts.total(), 'run')} failed"
    if counts[_S.CANCELLED]:
        reason += f", {counts[_S.CANCELLED]} did not start"
    return BackfillSignal.FAIL, reason


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
