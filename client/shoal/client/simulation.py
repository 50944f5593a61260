"""What the simulator gets from a cluster: a model of its load, and recorded runs to compare with.

``collect`` makes the model: workflows, schedules, slots and durations. ``runs_of`` and
``attempts_of`` read the runs of one day.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from pydantic import ValidationError

from shoal.client.errors import ApiProblem
from shoal.client.rest.client import ShoalClient
from shoal.core.definition.fields import Priority
from shoal.core.definition.kinds import CHOOSERS, WITH_CHILDREN, is_logic
from shoal.core.definition.model import ScheduleSpec, WorkflowSpec
from shoal.core.runs.states import TaskSignal
from shoal.insight.simulate.engine.chance import quantile
from shoal.insight.simulate.model import (
    GroupModel,
    Model,
    TaskHistory,
    WorkflowModel,
    hour_of_week,
)
from shoal.insight.simulate.validation import RecordedAttempt, RecordedRun

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import (
        InstanceOut,
        ScheduleOut,
        TaskOut,
        TaskState,
        WorkerOut,
    )

PAGE = 500
MOST_ATTEMPTS = 100_000  # of the newest, that durations are taken from
MOST_RUNS = 50_000  # of the newest, that rates of requests are taken from
MOST_SAMPLES = 100  # durations of a task; of more, as many quantiles
_MOST_OUTPUTS = 5  # sets of outputs of a task
_FEW_S = 0.05  # the quantile of waits that is taken for the time from a free slot to the start
_WEEK = timedelta(days=7)
_ENDS: "tuple[TaskState, ...]" = ("SUCCEEDED", "FAILED", "RESCHEDULED")


def collect(client: ShoalClient, now: datetime, history: timedelta) -> Model:
    """Return a model of the cluster at ``now``, with what it did within ``history`` before."""
    notes: list[str] = []
    since = now - history
    attempts = list(islice(_attempts(client, since), MOST_ATTEMPTS + 1))
    if len(attempts) > MOST_ATTEMPTS:
        del attempts[MOST_ATTEMPTS:]
        oldest = attempts[-1]["finished_at"]
        notes.append(f"durations come from the newest {MOST_ATTEMPTS:,} attempts, since {oldest}")
    histories = _histories(attempts)
    workflows = list(_workflows(client, histories, notes))
    requests = _requests(client, since, now, notes)
    workflows = [
        one.model_copy(update={"requests": requests[one.name]}) if one.name in requests else one
        for one in workflows
    ]
    projects = sorted({one.definition.project for one in workflows})
    return Model(
        at=now,
        groups=_groups(client, attempts, notes),
        concurrency={
            f"{project}/{group['name']}": group["slots"]
            for project in projects
            for group in client.pages(client.list_concurrency_groups, project)
        },
        calendars={
            f"{project}/{calendar['name']}": tuple(map(date.fromisoformat, calendar["days"]))
            for project in projects
            for calendar in client.pages(client.list_calendars, project)
        },
        workflows=tuple(_with_outputs(client, workflows, attempts)),
        notes=tuple(notes),
    )


# -- workflows ----------------------------------------------------------------------------------


def _workflows(
    client: ShoalClient, histories: Mapping[tuple[str, str], TaskHistory], notes: list[str]
) -> Iterator[WorkflowModel]:
    schedules: defaultdict[str, list[ScheduleOut]] = defaultdict(list)
    for schedule in client.pages(client.list_schedules):
        schedules[f"{schedule['project']}/{schedule['workflow']}"].append(schedule)
    paused = 0
    parameters: dict[str, dict[str, str]] = {}
    for listed in client.pages(client.list_workflows):
        project, name = listed["project"], f"{listed['project']}/{listed['name']}"
        found = client.get_workflow(project, listed["name"])
        try:
            spec = WorkflowSpec.model_validate({"project": project, **found["definition"]})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            notes.append(f"{name} is left out: its definition cannot be read: {first['msg']}")
            continue
        fires = [one for one in schedules[name] if one["enabled"] and not one["paused_at"]]
        paused += sum(one["paused_at"] is not None for one in schedules[name])
        spec = spec.model_copy(update={"schedules": tuple(map(_schedule, fires))})
        if project not in parameters:
            parameters[project] = {
                one["name"]: one["value"] for one in client.pages(client.list_parameters, project)
            }
        own = {t.name: histories[name, t.name] for t in spec.tasks if (name, t.name) in histories}
        yield WorkflowModel(definition=spec, parameters=parameters[project], tasks=own)
    if paused:
        notes.append(
            f"{paused} schedules are paused and do not fire"
            if paused > 1
            else "1 schedule is paused and does not fire"
        )


def _schedule(stored: "ScheduleOut") -> ScheduleSpec:
    """Return a stored schedule as a definition has it."""
    kept = {name: value for name, value in stored.items() if name in ScheduleSpec.model_fields}
    return ScheduleSpec.model_validate({k: v for k, v in kept.items() if v is not None})


# -- history ------------------------------------------------------------------------------------


def _attempts(client: ShoalClient, since: datetime) -> "Iterator[TaskOut]":
    """Yield attempts that workers have run and that ended since then, newest first."""
    found = client.pages(client.list_task_instances, finished_since=since, state=_ENDS, limit=PAGE)
    return (one for one in found if not is_logic(one["type"]) and one["started_at"])


@dataclass
class _Gathered:
    """What the attempts of one task were."""

    seconds: list[float] = field(default_factory=list)
    failed: list[float] = field(default_factory=list)
    looks: list[int] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)


def _histories(attempts: "Iterable[TaskOut]") -> dict[tuple[str, str], TaskHistory]:
    """Return histories by PROJECT/NAME of the workflow and name of the task."""
    gathered: defaultdict[tuple[str, str], _Gathered] = defaultdict(_Gathered)
    for one in attempts:
        task = gathered[f"{one['project']}/{one['workflow']}", one["task"]]
        seconds = seconds_between(one["started_at"], one["finished_at"])
        task.ends[one["state"]] += 1
        if one["state"] == "FAILED":
            task.failed.append(seconds)
        else:
            task.seconds.append(seconds)
        if one["state"] == "SUCCEEDED":
            task.looks.append(one["looks"])
        if one["looks"] and one["due_at"] and one["queued_at"]:
            task.again.append(pause_s(one))
    return {key: _history(one) for key, one in gathered.items()}


def _history(one: _Gathered) -> TaskHistory:
    failed, succeeded = one.ends["FAILED"], one.ends["SUCCEEDED"]
    waits = any(one.looks) or one.ends["RESCHEDULED"]
    return TaskHistory(
        seconds=quantiles(one.seconds),
        failed_seconds=quantiles(one.failed),
        failure=failed / (failed + succeeded) if failed else 0.0,
        looks=tuple(sorted(one.looks))[:: max(1, len(one.looks) // MOST_SAMPLES)] if waits else (),
        again_s=quantiles(one.again),
    )


def pause_s(one: "TaskOut") -> float:
    """Return the seconds between two looks, on the average of those that there were."""
    since = seconds_between(one["waiting_since"], one["due_at"])
    return since / one["looks"]


def quantiles(values: Sequence[float]) -> tuple[float, ...]:
    """Return ascending values, at most ``MOST_SAMPLES``: of more, quantiles at equal steps."""
    ordered = sorted(values)
    if len(ordered) > MOST_SAMPLES:
        steps = MOST_SAMPLES - 1
        ordered = [quantile(ordered, step / steps) for step in range(MOST_SAMPLES)]
    return tuple(round(value, 4) for value in ordered)


def seconds_between(start: str | None, end: str | None) -> float:
    """Return the seconds from one time of the API to another, 0 if a clock went back."""
    if start is None or end is None:
        return 0.0
    length = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return max(0.0, length.total_seconds())


def _with_outputs(
    client: ShoalClient, workflows: Sequence[WorkflowModel], attempts: "Iterable[TaskOut]"
) -> Iterator[WorkflowModel]:
    """Add what tasks passed on, where a task that the master runs may depend on it."""
    wanted = {
        one.name
        for one in workflows
        if any(task.type in CHOOSERS or task.type in WITH_CHILDREN for task in one.definition.tasks)
    }
    outputs: defaultdict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    asked = Counter[tuple[str, str]]()
    for one in attempts:
        key = (f"{one['project']}/{one['workflow']}", one["task"])
        if key[0] not in wanted or one["state"] != "SUCCEEDED" or asked[key] >= _MOST_OUTPUTS:
            continue
        asked[key] += 1
        if given := client.get_task_instance(one["id"])["outputs"]:
            outputs[key].append(given)
    for workflow in workflows:
        tasks = {
            name: history.model_copy(update={"outputs": tuple(found)})
            if (found := outputs.get((workflow.name, name)))
            else history
            for name, history in workflow.tasks.items()
        }
        yield workflow.model_copy(update={"tasks": tasks})


# -- runs that no schedule starts -----------------------------------------------------------------


def _requests(
    client: ShoalClient, since: datetime, now: datetime, notes: list[str]
) -> dict[str, dict[int, float]]:
    """Return the runs that were asked for, as rates by hour of the week."""
    listed = list(
        islice(client.pages(client.list_instances, since=since, limit=PAGE), MOST_RUNS + 1)
    )
    if len(listed) > MOST_RUNS:
        del listed[MOST_RUNS:]
        last = listed[-1]["created_at"]
        notes.append(f"rates of requests come from the newest {MOST_RUNS:,} runs, since {last}")
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    backfilled = 0
    for run in listed:
        backfilled += run["backfill_id"] is not None
        if is_requested(run):
            at = datetime.fromisoformat(run["created_at"])
            counts[f"{run['project']}/{run['workflow']}"][hour_of_week(at)] += 1
    if backfilled:
        notes.append(f"{backfilled:,} runs of backfills in the history are not expected again")
    # What there is no run of before the oldest one may be too young for, or purged.
    oldest = min((datetime.fromisoformat(run["created_at"]) for run in listed), default=now)
    if counts and now - oldest < _WEEK:
        notes.append("less than a week of history: what was asked for in it is taken for a week's")
    weeks = max(1.0, (now - oldest) / _WEEK)
    return {
        name: {hour: round(count / weeks, 6) for hour, count in sorted(by_hour.items())}
        for name, by_hour in counts.items()
    }


def is_requested(run: "InstanceOut") -> bool:
    """Whether a person or a program asked for a run: it has neither schedule nor parent."""
    by_others = (run["schedule_id"], run["backfill_id"], run["parent"])
    return all(one is None for one in by_others)


# -- workers ------------------------------------------------------------------------------------


def _groups(
    client: ShoalClient, attempts: "Iterable[TaskOut]", notes: list[str]
) -> dict[str, GroupModel]:
    waits: defaultdict[str, list[float]] = defaultdict(list)
    for one in attempts:
        waits[one["worker_group"]].append(seconds_between(one["queued_at"], one["started_at"]))
    slots = Counter[str]()
    for worker in _workers(client, notes):
        if worker["paused"] is None:
            slots[worker["group"]] += worker["slots"]
        else:
            notes.append(f"the worker {worker['id']} is paused: its slots do not count")
    # Of groups without a worker, whose slots a user may give, the start is known as well.
    return {
        name: GroupModel(slots=slots[name], start_s=round(start_s(waits[name]), 4))
        for name in sorted({*slots, *(waits if not slots else ())})
    }


def _workers(client: ShoalClient, notes: list[str]) -> "Iterator[WorkerOut]":
    """Yield the live workers; none if they are not for the caller."""
    try:
        yield from client.pages(client.list_workers)
    except ApiProblem as problem:
        if problem.status != 403:
            raise
        notes.append(
            "which workers there are is for who may see the cluster: name the slots, --slots 8 or "
            "--group etl=8"
        )


def start_s(waits: Sequence[float]) -> float:
    """Return the time from a free slot to the start of a program, of waits from queue to start.

    The fifth percentile: that of attempts that found a free slot, unless the slots are always full.
    """
    return quantile(sorted(waits), _FEW_S) if waits else 0.0


_DAY = timedelta(days=1)
_SIGNALS = {
    "SUCCEEDED": TaskSignal.SUCCEED,
    "FAILED": TaskSignal.FAIL,
    "RESCHEDULED": TaskSignal.RESCHEDULE,
}


def runs_of(client: ShoalClient, day: datetime) -> list[RecordedRun]:
    """Return the runs that were started within a day from ``day`` on, without sub-workflows."""
    listed = client.pages(client.list_instances, since=day, until=day + _DAY, limit=PAGE)
    found = [
        RecordedRun(
            id=one["id"],
            workflow=f"{one['project']}/{one['workflow']}",
            created_at=datetime.fromisoformat(one["created_at"]),
            logical_time=datetime.fromisoformat(one["logical_time"]),
            timezone=one["timezone"],
            priority=Priority[one["priority"]].value,
            is_free=one["backfill_id"] is not None or one["rerun_of"] is not None,
        )
        for one in listed
        if one["parent"] is None
    ]
    return sorted(found, key=lambda run: (run.created_at, run.id))


def attempts_of(client: ShoalClient, day: datetime) -> Iterator[RecordedAttempt]:
    """Yield what workers have begun within two days from ``day`` on."""
    listed = client.pages(
        client.list_task_instances, started_since=day, started_until=day + 2 * _DAY, limit=PAGE
    )
    for one in listed:
        if not is_logic(one["type"]) and one["queued_at"] and one["started_at"]:
            yield _attempt(one)


def _attempt(one: "TaskOut") -> RecordedAttempt:
    signal = _SIGNALS.get(one["state"])
    has_ended = signal is not None
    return RecordedAttempt(
        run_id=one["workflow_instance_id"],
        workflow=f"{one['project']}/{one['workflow']}",
        task=one["task"],
        number=one["attempt"],
        group=one["worker_group"],
        wait_s=seconds_between(one["queued_at"], one["started_at"]),
        seconds=seconds_between(one["started_at"], one["finished_at"]) if has_ended else None,
        signal=signal or TaskSignal.SUCCEED,
        again_s=pause_s(one) if one["looks"] and one["due_at"] else 60.0,
    )
