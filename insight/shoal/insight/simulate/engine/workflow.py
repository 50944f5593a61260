"""What does not change while a simulation runs: plans, policies, timetables, parameters."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from shoal.core.definition.deadline import instant_of
from shoal.core.definition.kinds import is_logic
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.definition.parameters import Launch, ParameterType, launch
from shoal.core.runs.overlap import OverlapPolicy
from shoal.core.runs.run import WorkflowPlan
from shoal.core.schedule.fire_times import Timetable
from shoal.core.timing.durations import format_duration
from shoal.insight.simulate.engine.chance import key_of
from shoal.insight.simulate.engine.outcomes import Drawn, Outcomes, Repeated, SimulatedOutcome
from shoal.insight.simulate.model import Model, TaskHistory, WorkflowModel

UNKNOWN_S = 60.0  # how long a task is taken to last if none of its type is known
# The assumed value of a parameter that every start has to give and that was not given here.
_PLACEHOLDERS = {
    ParameterType.STRING: "",
    ParameterType.INTEGER: "0",
    ParameterType.NUMBER: "0",
    ParameterType.BOOLEAN: "false",
    ParameterType.DATE: "2000-01-01",
}


@dataclass(frozen=True)
class TimedStart:
    """One schedule. ``shift``: by how much later it fires than its timetable says."""

    index: int
    timetable: Timetable
    timezone: str
    priority: int | None
    parameters: Mapping[str, str]
    shift: timedelta = timedelta(0)


class SimulatedWorkflow:
    """A workflow that can be started."""

    def __init__(
        self,
        model: WorkflowModel,
        outcomes: Mapping[str, Outcomes],
        schedules: Sequence[TimedStart],
    ) -> None:
        spec = model.definition
        self.name = model.name
        self.spec: WorkflowSpec = spec
        self.key = key_of(self.name)
        self.plan = WorkflowPlan.of(spec)
        self.priorities = {task.name: int(task.priority) for task in spec.tasks}
        self.policy = OverlapPolicy.of(spec)
        self.outcomes = outcomes
        self.schedules = schedules
        self.requests = model.requests
        self.shares = any(task.concurrency_group for task in spec.tasks)  # needs further slots
        self._project = model.parameters

    def lacking(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return stand-ins for the parameters that a start has to give and that are not given."""
        return {
            name: _PLACEHOLDERS[parameter.type]
            for name, parameter in self.spec.parameters.items()
            if parameter.default is None and name not in given
        }

    def launch(self, given: Mapping[str, str], *, data: bool) -> Launch:
        """Return the parameters of a run; those that were not given are taken to be empty.

        Raises ValueError for values that do not fit.
        """
        return launch(
            self.spec.parameters, self._project, {**self.lacking(given), **given}, data=data
        )

    def deadline_at(self, since: datetime, timezone: str) -> datetime | None:
        """Return when a run should have ended that was due at ``since``."""
        if self.spec.deadline is None:
            return None
        return instant_of(self.spec.deadline, since, timezone)


class PreparedPlan:
    """The workflows of a model by name. ``assumed``: sentences about what history lacks."""

    def __init__(self, model: Model, shifts: Mapping[str, timedelta] | None = None) -> None:
        self.assumed: list[str] = []
        self._typical, self._lacking = _typical(model), Counter[str]()
        shifts = shifts or {}
        self.workflows = {
            one.name: SimulatedWorkflow(
                one,
                {task.name: self._outcomes(one, task) for task in _worked(one.definition)},
                list(self._schedules(model, one, shifts.get(one.name, timedelta(0)))),
            )
            for one in model.workflows
        }
        for workflow in self.workflows.values():
            if workflow.requests and (lacking := sorted(workflow.lacking({}))):
                self.assumed.append(
                    f"{workflow.name}: runs that are asked for have no value of "
                    f"{', '.join(lacking)}, which each start has to give: taken to be empty"
                )
        for type_, count in sorted(self._lacking.items()):
            seconds = self._typical.get(type_)
            lasts = format_duration(UNKNOWN_S if seconds is None else seconds)
            why = "the median of their type" if seconds is not None else "none of the type is known"
            tasks = "1 task" if count == 1 else f"{count:,} tasks"
            self.assumed.append(
                f"{tasks} of the type {type_} never ended within the history: taken to last "
                f"{lasts} each ({why}); --duration says better"
            )

    def repeat(
        self, recorded: Mapping[tuple[str, str], Mapping[tuple[int, int], SimulatedOutcome]]
    ) -> None:
        """Let attempts end as they were recorded, by workflow and task; see ``Repeated``."""
        for (name, task), ends in recorded.items():
            workflow = self.workflows.get(name)
            if workflow is not None and task in workflow.outcomes:
                outcomes = {task: Repeated(ends, workflow.outcomes[task])}
                workflow.outcomes = {**workflow.outcomes, **outcomes}

    def _outcomes(self, model: WorkflowModel, task: TaskSpec) -> Outcomes:
        history = model.tasks.get(task.name)
        if history is None or not (history.seconds or history.failed_seconds):
            self._lacking[task.type] += 1
            seconds = self._typical.get(task.type, UNKNOWN_S)
            history = (history or TaskHistory()).model_copy(update={"seconds": (seconds,)})
        return Drawn(task.name, history)

    def _schedules(
        self, model: Model, one: WorkflowModel, shift: timedelta
    ) -> Iterator[TimedStart]:
        spec = one.definition
        for index, schedule in enumerate(spec.schedules):
            if not schedule.enabled:
                continue
            named = None if schedule.calendar is None else f"{spec.project}/{schedule.calendar}"
            if named is not None and named not in model.calendars:
                self.assumed.append(
                    f"{one.name}: its calendar {named} is not known; it fires on all days"
                )
            days = model.calendars.get(named or "", ())
            timetable = Timetable.defined(schedule, spec.timezone, days)
            yield TimedStart(
                index,
                timetable,
                schedule.timezone or spec.timezone,
                schedule.priority,
                schedule.parameters,
                shift,
            )


def _worked(spec: WorkflowSpec) -> Iterable[TaskSpec]:
    """Return the tasks that workers run."""
    return (task for task in spec.tasks if not is_logic(task.type))


def _typical(model: Model) -> dict[str, float]:
    """Return the median of the tasks' medians, in seconds, by type."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for one in model.workflows:
        for task in _worked(one.definition):
            if (history := one.tasks.get(task.name)) is not None and history.seconds:
                found[task.type].append(median(history.seconds))
    return {type_: median(seconds) for type_, seconds in found.items()}
