"""A run against what is usual: what took longer, what waited longer, and what that changed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shoal.core.insight.baselines import ANY, RUN, Baseline, Baselines
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.timing.durations import format_duration

FEWEST = 5  # values, below which nothing is called usual
_MOST_NAMED = 3  # tasks in a sentence
_DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


class Verdict(StrEnum):
    """What a duration is beside those before it."""

    SLOWER = "slower"
    USUAL = "usual"
    FASTER = "faster"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Compared:
    """What took some time, beside its baseline. Seconds; None: not known.

    ``took_s`` is up to now where it goes on. ``waited_s``: in the queue; of runs from the creation
    to the start.
    """

    verdict: Verdict
    took_s: float | None
    waited_s: float | None
    difference_s: float | None
    wait_difference_s: float | None
    baseline: Baseline | None


@dataclass(frozen=True)
class ComparedTask:
    """A task of the run. ``attempt``: the newest one.

    ``path_wait_s``: None: the end of the run has not waited for it; else from the end of the link
    of the critical path before it (the start of the run) to its start, earlier attempts included.
    ``effect_s``: by how much it has made the run longer (negative: shorter): what it took and
    waited on the path beyond its medians.
    """

    attempt: TaskInstance
    compared: Compared
    path_wait_s: float | None
    effect_s: float | None


@dataclass(frozen=True)
class RunComparison:
    """A run and its tasks, those first that made it longer."""

    run: Compared
    tasks: Sequence[ComparedTask]


def verdict_of(took_s: float | None, usual: Baseline | None, is_open: bool = False) -> Verdict:
    """Say whether a duration is usual.

    It is if it differs from the median by no more than three times the MAD, a tenth of the median,
    or a second, whichever is most. What goes on may become slower yet, but is not called faster.
    """
    if took_s is None or usual is None or usual.n < FEWEST:
        return Verdict.UNKNOWN
    margin = max(3 * usual.mad_s, 0.1 * usual.p50_s, 1.0)
    if took_s > usual.p50_s + margin:
        return Verdict.SLOWER
    if took_s < usual.p50_s - margin and not is_open:
        return Verdict.FASTER
    return Verdict.USUAL


def compare(
    run: Instance,
    attempts: Iterable[TaskInstance],
    critical: Sequence[str],
    baselines: Baselines,
    now: datetime,
) -> RunComparison:
    """Compare a run with what is usual for it.

    ``attempts``: the newest of each task; ``critical``: the tasks that the end of the run has
    waited for, the first one first.
    """
    newest = {one.task: one for one in attempts}
    waits = _path_waits(run, critical, newest)
    tasks = [_compared_task(one, waits.get(one.task), baselines, now) for one in newest.values()]
    tasks.sort(key=_rank)
    whole = _compared(run.created_at, run.started_at, run.finished_at, baselines, RUN, now=now)
    return RunComparison(whole, tasks)


def _path_waits(
    run: Instance, critical: Sequence[str], newest: Mapping[str, TaskInstance]
) -> dict[str, float]:
    """Return, for each link of the path, the time between the link before and its start."""
    found: dict[str, float] = {}
    before = run.started_at
    for task in critical:
        one = newest[task]
        if before is None or one.started_at is None or one.finished_at is None:
            return {}
        found[task] = max(0.0, (one.started_at - before).total_seconds())
        before = one.finished_at
    return found


def _compared_task(
    one: TaskInstance, path_wait_s: float | None, baselines: Baselines, now: datetime
) -> ComparedTask:
    compared = _compared(
        one.queued_at, one.started_at, one.finished_at, baselines, one.task, now=now
    )
    effect = None
    if path_wait_s is not None and compared.difference_s is not None:
        usual = compared.baseline
        effect = compared.difference_s + path_wait_s - ((usual and usual.wait_p50_s) or 0.0)
    return ComparedTask(one, compared, path_wait_s, effect)


def _compared(
    since: datetime | None,
    started: datetime | None,
    finished: datetime | None,
    baselines: Baselines,
    task: str,
    *,
    now: datetime,
) -> Compared:
    if started is None:  # it never ran, or waits
        return Compared(Verdict.UNKNOWN, None, None, None, None, None)
    took = max(0.0, ((finished or now) - started).total_seconds())
    waited = None if since is None else max(0.0, (started - since).total_seconds())
    usual = baselines.of(task, started)
    is_told = usual is not None and usual.n >= FEWEST
    difference = took - usual.p50_s if usual is not None and is_told else None
    wait = usual.wait_p50_s if usual is not None and is_told else None
    return Compared(
        verdict_of(took, usual, is_open=finished is None),
        took,
        waited,
        difference,
        None if wait is None or waited is None else waited - wait,
        usual,
    )


def _rank(task: ComparedTask) -> tuple[bool, float, bool, float, int]:
    """Those with an effect first, the greatest first; then by their own difference."""
    effect, own = task.effect_s, task.compared.difference_s
    return effect is None, -(effect or 0.0), own is None, -(own or 0.0), task.attempt.id


# -- in words -------------------------------------------------------------------------------------


def sentence(
    instance_id: int,
    took_s: float | None,
    usual_s: float | None,
    verdict: Verdict,
    when: str,
    causes: Iterable[tuple[str, float]],
    *,
    is_open: bool = False,
) -> str:
    """Say in one sentence how long a run took, what is usual, and what made the difference.

    ``when``: of which times the usual is, see ``when_of``. ``causes``: what, and by how many
    seconds it made the run longer.
    """
    run = f"Run {instance_id}"
    if took_s is None:
        return f"{run} has not begun to work"
    took = f"{run} {'has been running for' if is_open else 'took'} {format_duration(took_s)}"
    if usual_s is None or verdict is Verdict.UNKNOWN:
        return f"{took}; nothing is known yet of what is usual for it"
    usual = f"{format_duration(usual_s)}{f' {when}' if when else ''}"
    if verdict is Verdict.USUAL:
        return f"{took}, as usual ({usual})"
    more = took_s - usual_s
    side = "longer" if more > 0 else "less"
    said = f"{took}, {format_duration(abs(more))} {side} than usual ({usual})"
    named = _named(causes, more)
    return f"{said}: {named}" if named else said


def when_of(weekday: int, hour: int) -> str:
    """Say of which starts a baseline is: ``on Mondays at 02``; empty: of all."""
    day = "" if weekday == ANY else f"on {_DAYS[weekday]}"
    at = "" if hour == ANY else f"at {hour:02}"
    return " ".join(part for part in (day, at) if part)


def _named(causes: Iterable[tuple[str, float]], more: float) -> str:
    """Name what went the way of the difference and is not a trifle: a twentieth of it or more."""
    sign = 1 if more > 0 else -1
    counted = [(name, by) for name, by in causes if sign * by >= abs(more) / 20]
    counted.sort(key=lambda one: -sign * one[1])
    return ", ".join(
        f"{name} {'+' if by > 0 else '-'}{format_duration(abs(by))}"
        for name, by in counted[:_MOST_NAMED]
    )
