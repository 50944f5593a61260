"""How far the simulator is from a recorded day: its waits beside those that there were."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any

from shoal.core.errors import ShoalError
from shoal.core.runs.run import Attempt
from shoal.core.runs.states import TaskSignal
from shoal.insight.simulate.engine.arrivals import Arrival
from shoal.insight.simulate.engine.chance import mixed, quantile
from shoal.insight.simulate.engine.outcomes import SimulatedOutcome
from shoal.insight.simulate.engine.workflow import PreparedPlan
from shoal.insight.simulate.model import Model
from shoal.insight.simulate.result import Spread
from shoal.insight.simulate.simulation import LIMIT_S, Question, play

_DAY = timedelta(days=1)


class NothingRecorded(ShoalError, LookupError):
    """There is no run to compare with."""


@dataclass(frozen=True)
class RecordedRun:
    """A run that a person, a program or a schedule has started. ``workflow``: PROJECT/NAME."""

    id: int
    workflow: str
    created_at: datetime
    logical_time: datetime
    timezone: str
    priority: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    is_free: bool = False  # of a backfill, or a rerun: no overlap policy was asked


@dataclass(frozen=True)
class RecordedAttempt:
    """An attempt that a worker has run. ``wait_s``: from the queue to the start of its program."""

    run_id: int
    workflow: str
    task: str
    number: int
    group: str
    wait_s: float
    seconds: float | None  # None: it was killed, or lost, or has not ended
    signal: TaskSignal
    again_s: float = 0.0


@dataclass(frozen=True)
class Error:
    """Simulated waits beside recorded ones, of the same attempts where there are both.

    ``median_s`` and ``p95_s`` are quantiles of the absolute differences.
    """

    attempts: int
    recorded: Spread
    simulated: Spread
    median_s: float
    p95_s: float


@dataclass(frozen=True)
class Validation:
    """A recorded day, by worker group.

    ``repeated``: with the durations that were recorded, so that the queues alone are judged;
    ``drawn``: with durations drawn from the history, as in any simulation.
    """

    day: str
    runs: int
    attempts: int
    repeated: Mapping[str, Error]
    drawn: Mapping[str, Error]
    left_out: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def validate(
    model: Model,
    day: datetime,
    runs: Sequence[RecordedRun],
    attempts: Sequence[RecordedAttempt],
    seed: int = 1,
) -> Validation:
    """Simulate the runs of a day, which begins at ``day``, and compare waits.

    Raises NothingRecorded.
    """
    known = {one.name for one in model.workflows}
    left_out = list(model.notes)
    gone = sum(run.workflow not in known for run in runs)
    if gone:
        left_out.append(f"{gone:,} runs belong to workflows that no longer exist")
    runs = [run for run in runs if run.workflow in known]
    ids = {run.id for run in runs}
    compared = [one for one in attempts if one.run_id in ids]
    if not compared:
        raise NothingRecorded(
            f"no attempt is recorded of a run that was started on {day:%Y-%m-%d} (UTC) and whose "
            "workflow is there; choose a day with runs, `shoal instances` lists them"
        )
    if others := len(attempts) - len(compared):
        left_out.append(
            f"{others:,} attempts of sub-workflows, or of runs of other days, are not compared"
        )
    end = max(run.created_at for run in runs) + 2 * _DAY
    question = Question(day, end, seed, LIMIT_S)
    simulated = [_waits(model, question, runs, compared, repeats) for repeats in (True, False)]
    repeated, drawn = (_errors(compared, waits) for waits in simulated)
    return Validation(f"{day:%Y-%m-%d}", len(runs), len(compared), repeated, drawn, tuple(left_out))


def start_of(text: str) -> datetime:
    """Return when a day (YYYY-MM-DD) begins in UTC. Raises ValueError."""
    day = datetime.strptime(text, "%Y-%m-%d").date()
    return datetime.combine(day, time(), UTC)


_Waits = Mapping[tuple[int, str, int], float]  # by run, task and number of the attempt


def _waits(
    model: Model,
    question: Question,
    runs: Iterable[RecordedRun],
    attempts: Iterable[RecordedAttempt],
    repeats: bool,
) -> _Waits:
    """Simulate; return the waits of attempts."""
    prepared = PreparedPlan(model)
    if repeats:
        prepared.repeat(_recorded(attempts, question.seed))
    waits: dict[tuple[int, str, int], float] = {}
    ids = {_key(question.seed, run.id): run.id for run in runs}

    def note(key: int, _: str, attempt: Attempt, wait_s: float) -> None:
        if (run_id := ids.get(key)) is not None:
            waits[run_id, attempt.task, attempt.number] = wait_s

    arrivals = sorted(
        (
            Arrival(
                run.created_at,
                run.workflow,
                _key(question.seed, run.id),
                run.logical_time,
                run.timezone,
                run.priority,
                parameters=run.parameters,
                is_free=run.is_free,
            )
            for run in runs
        ),
        key=lambda one: (one.at, one.key),
    )
    play(model, question, prepared=prepared, arrivals=arrivals, on_claim=note)
    return waits


def _key(seed: int, run_id: int) -> int:
    return mixed(seed, run_id)


def _recorded(
    attempts: Iterable[RecordedAttempt], seed: int
) -> Mapping[tuple[str, str], Mapping[tuple[int, int], SimulatedOutcome]]:
    found: defaultdict[tuple[str, str], dict[tuple[int, int], SimulatedOutcome]] = defaultdict(dict)
    for one in attempts:
        if one.seconds is not None:
            outcome = SimulatedOutcome(one.seconds, one.signal, again_s=one.again_s)
            found[one.workflow, one.task][_key(seed, one.run_id), one.number] = outcome
    return found


def _errors(attempts: Iterable[RecordedAttempt], waits: _Waits) -> Mapping[str, Error]:
    """Return the errors by worker group."""
    pairs: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in attempts:
        simulated = waits.get((one.run_id, one.task, one.number))
        if simulated is not None:
            pairs[one.group].append((one.wait_s, simulated))
    return {group: _error(found) for group, found in sorted(pairs.items())}


def _error(pairs: Sequence[tuple[float, float]]) -> Error:
    off = sorted(abs(recorded - simulated) for recorded, simulated in pairs)
    return Error(
        len(pairs),
        Spread.of(recorded for recorded, _ in pairs),
        Spread.of(simulated for _, simulated in pairs),
        round(quantile(off, 0.5), 3),
        round(quantile(off, 0.95), 3),
    )
