"""One workflow instance in memory: its plan, the current attempt of every task, its state.

``Run`` is changed only by ``Run.apply`` with a ``Decision``; the decisions come from ``decide``.
Times are timezone-aware UTC datetimes and always come from outside.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any

from shoal.core.definition.dag import successors_of
from shoal.core.definition.kinds import LogicKind, choices_of, is_logic, judges_of
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.runs.commands import CommandType, Parent
from shoal.core.runs.states import BETWEEN_LOOKS, FINISHED_TASK, TaskState, WorkflowState


@dataclass(frozen=True)
class WorkflowPlan:
    """The graph of one workflow version, shared by all its instances."""

    spec: WorkflowSpec
    tasks: Mapping[str, TaskSpec]
    upstream: Mapping[str, tuple[str, ...]]
    downstream: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, LogicKind]  # of the tasks that the master runs
    choices: Mapping[str, frozenset[str]]  # by task that chooses: the tasks it chooses from
    choosers: Mapping[str, tuple[str, ...]]  # by task: those of ``choices`` that choose it or not
    judges: Mapping[str, tuple[str, ...]]  # by task: the CONDITIONS tasks that use its result
    once: frozenset[str] = frozenset()  # tasks that are not run again when their worker is lost
    publishes: bool = False  # whether a task makes resources

    @classmethod
    def of(cls, spec: WorkflowSpec, once: frozenset[str] = frozenset()) -> "WorkflowPlan":
        """Index a checked definition by task name."""
        upstream = {task.name: task.depends_on for task in spec.tasks}
        choices = {task.name: chosen for task in spec.tasks if (chosen := choices_of(task))}
        return cls(
            spec=spec,
            tasks={task.name: task for task in spec.tasks},
            upstream=upstream,
            downstream=successors_of(upstream),
            kinds={task.name: LogicKind(task.type) for task in spec.tasks if is_logic(task.type)},
            choices=choices,
            choosers=successors_of(
                {chooser: tuple(sorted(names)) for chooser, names in choices.items()}
            ),
            judges=judges_of(spec.tasks),
            once=once,
            publishes=any(task.publish for task in spec.tasks),
        )


class SkipCause(StrEnum):
    """Why a task will not run: what the tasks behind it make of that depends on it."""

    DISABLED = "DISABLED"  # by the definition; counts as a success
    NOT_SELECTED = "NOT_SELECTED"  # the run is about other tasks; counts as a success
    BRANCH = "BRANCH"  # a branch that was not taken; neither a success nor a failure
    UPSTREAM = "UPSTREAM"  # an upstream task did not bring what it needs; a failure's consequence
    FAILING = "FAILING"  # the failure strategy starts nothing more; a failure's consequence


class Termination(StrEnum):
    """Why an attempt is being ended before its time."""

    KILL = "KILL"  # by request: it is not tried again
    TIMEOUT = "TIMEOUT"  # a task that the master runs, or that looks again, reached its timeout


_NOTHING: Mapping[str, Any] = {}  # one for all attempts, of which there may be millions


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one task: a task instance. ``id`` is None until it is stored.

    ``failures`` and ``losses`` count the earlier attempts of the same task since its last
    (re)start by a person: failures use up retries, losses (worker gone) do not. ``looks`` counts
    the earlier ones, since such a start or a failure, that did not find what the task waits for;
    ``waiting_since`` is when its timeout began to count then. A look ends the count of losses.
    ``outputs`` are what the task gives to those behind it. ``detail`` is JSON of a logic task:
    the branch it chose, its children, the runs it found. The last four are what its worker has
    found at its end, None where it has not: see TaskEnded and ``why/fingerprints``.
    """

    task: str
    number: int
    state: TaskState = TaskState.WAITING
    id: int | None = None
    failures: int = 0
    losses: int = 0
    looks: int = 0
    waiting_since: datetime | None = None  # set if ``looks`` is not 0
    due_at: datetime | None = None  # not before; set while a delay runs
    worker: str | None = None  # the member that claimed it
    reason: str | None = None  # why it was skipped, failed, killed or lost; for people
    exit_code: int | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    skip_cause: SkipCause | None = None  # set with SKIPPED
    forced: bool = False  # taken for a success by request
    termination: Termination | None = None  # it is being ended; its report is awaited
    warned_at: datetime | None = None  # when it was found to run longer than its timeout
    outputs: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    detail: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    environment: str | None = None  # that its program ran in, as NAME@VERSION
    cpu_s: float | None = None
    max_rss_kb: int | None = None
    error_line: str | None = None  # of an attempt that failed or was lost
    fingerprint: str | None = None  # of ``error_line``

    @property
    def finished(self) -> bool:
        """Whether the state is final for this attempt."""
        return self.state in FINISHED_TASK

    @property
    def is_between_looks(self) -> bool:
        """Whether it waits to look once more for what it has not found before."""
        return self.looks > 0 and self.state in BETWEEN_LOOKS

    def changed(self, **fields: Any) -> "Attempt":
        """Return a copy with other values of ``fields``.

        As ``dataclasses.replace``, and several times as quick: attempts change all the time.
        """
        copy = object.__new__(Attempt)
        for put, value in zip(_PUTS, _VALUES(self), strict=True):
            put(copy, value)
        for name, value in fields.items():
            object.__setattr__(copy, name, value)
        return copy


_NAMES = tuple(each.name for each in dataclass_fields(Attempt))
_VALUES = attrgetter(*_NAMES)
_PUTS = tuple(vars(Attempt)[name].__set__ for name in _NAMES)  # of the slots

AttemptKey = tuple[str, int]  # (task name, attempt number)


@dataclass(frozen=True)
class Enqueue:
    """Put the attempt into the queue of its worker group. Harmless when repeated."""

    key: AttemptKey


@dataclass(frozen=True)
class Withdraw:
    """Take the attempt out of the queue; it may be gone already."""

    key: AttemptKey


@dataclass(frozen=True)
class Kill:
    """Let ``worker`` end the attempt; its report brings the result."""

    key: AttemptKey
    worker: str | None


@dataclass(frozen=True)
class WakeAt:
    """Send ``TimeReached`` at ``at`` (or later)."""

    at: datetime


@dataclass(frozen=True)
class AskSlot:
    """Get the attempt a slot of ``group``; ``SlotGranted`` follows when there is one."""

    key: AttemptKey
    group: str


@dataclass(frozen=True)
class Watch:
    """Search the runs of a DEPENDENT task until ``DependencyJudged`` decides it."""

    key: AttemptKey


Action = Enqueue | Withdraw | Kill | WakeAt | AskSlot | Watch


@dataclass(frozen=True)
class StartChild:
    """Start the sub-workflow of an attempt, for item ``index``. Repeated, it starts nothing.

    ``parameters`` are rendered: values, to be taken character by character.
    """

    key: AttemptKey
    index: int
    project: str
    workflow: str
    version: int | None
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class AskChild:
    """Send a sub-workflow a request; it answers at once, and again whenever it comes to rest.

    ``number`` counts the requests to it. ``instance_id`` None: the instance that ``StartChild``
    of this attempt has made.
    """

    key: AttemptKey
    index: int
    type: CommandType
    instance_id: int | None = None
    number: int = 1


@dataclass(frozen=True)
class TellParent:
    """Report this instance's state to the task it works for. ``refused``: its last request."""

    parent: Parent
    state: WorkflowState
    reason: str | None
    outputs: Mapping[str, str]
    refused: bool = False


# Stored as commands in the transaction of the decision: they arrive, whatever process dies.
Message = StartChild | AskChild | TellParent


@dataclass(frozen=True)
class Decision:
    """What ``decide`` wants: rows to write, then actions to perform.

    ``attempts`` holds every attempt that changed, new ones with ``id`` None. ``refusal`` is set
    when the event was a request that the current state does not allow; then nothing changes, but
    a parent that asked gets the present state.
    """

    attempts: Mapping[AttemptKey, Attempt] = field(default_factory=dict)
    moved: frozenset[AttemptKey] = frozenset()  # those of ``attempts`` whose state has changed
    state: WorkflowState | None = None  # the new state of the instance, None if unchanged
    previous: WorkflowState | None = None  # its state before, set with ``state``: the guard
    reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    actions: tuple[Action, ...] = ()
    messages: tuple[Message, ...] = ()
    refusal: str | None = None
    admitted_at: datetime | None = None  # set when it is; stored already by the admission
    warned_at: datetime | None = None  # set when the instance's timeout is over and done with
    late_at: datetime | None = None  # set when the instance is found to be beyond its deadline
    timed_out: bool = False  # the instance has just reached its timeout
    overdue: tuple[str, ...] = ()  # tasks that have just reached theirs, and are warned of
    parent: Parent | None = None  # set when another task takes over the instance

    @property
    def changes_nothing(self) -> bool:
        """Whether there is nothing to store."""
        return not (
            self.attempts
            or self.state
            or self.messages
            or self.warned_at
            or self.late_at
            or self.parent
        )


@dataclass
class Run:
    """A workflow instance as its owning master holds it."""

    id: int
    plan: WorkflowPlan
    state: WorkflowState
    partition: int
    attempts: MutableMapping[str, Attempt]  # the newest attempt of every task of the plan
    created_at: datetime
    logical_time: datetime
    parameters: Mapping[str, str] = field(default_factory=dict)
    priority: int = 2
    version: int = 1
    timezone: str = "UTC"
    started_at: datetime | None = None
    startup: Mapping[str, str] = field(default_factory=dict)  # parameters given at the launch
    selected: frozenset[str] | None = None  # the tasks it is about; None: all
    parent: Parent | None = None  # the task it works for
    backfill_id: int | None = None
    admitted_at: datetime | None = None  # None: waits until others of its workflow have ended
    warned_at: datetime | None = None  # since when its timeout no longer counts
    deadline_at: datetime | None = None  # when it should have ended
    late_at: datetime | None = None  # when it was found to go on beyond that, for the first time
    reason: str | None = None  # why it is in its state; for people
    # Derived, kept in step by replace(): upstream tasks of each task that are unresolved,
    # newest attempts by state, and the task of every newest attempt's id.
    unresolved: dict[str, int] = field(init=False)
    counts: Counter[TaskState] = field(init=False)
    handled: Counter[TaskState] = field(init=False)  # of ``counts``: failures there are handled
    givers: set[str] = field(init=False)  # tasks with outputs
    task_of: dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        self.unresolved = dict.fromkeys(self.plan.tasks, 0)
        self.counts = Counter()
        self.handled = Counter()
        self.givers = set()
        self.task_of = {}
        for attempt in self.attempts.values():
            self._count(attempt, +1)

    def attempt_by_id(self, task_instance_id: int) -> Attempt | None:
        """Return the newest attempt of a task if it has this id."""
        task = self.task_of.get(task_instance_id)
        return None if task is None else self.attempts[task]

    def takes_part(self, task: str) -> bool:
        """Whether the task is enabled and among those that this run is about."""
        selected = self.selected is None or task in self.selected
        return selected and self.plan.tasks[task].enabled

    def is_handled(self, task: str) -> bool:
        """Whether a CONDITIONS task uses the result, so that a failure is expected."""
        return any(self.takes_part(judge) for judge in self.plan.judges.get(task, ()))

    def _count(self, attempt: Attempt, sign: int) -> None:
        self.counts[attempt.state] += sign
        if self.plan.judges and self.is_handled(attempt.task):
            self.handled[attempt.state] += sign
        if not attempt.finished:
            for task in self.plan.downstream[attempt.task]:
                self.unresolved[task] += sign
        if attempt.outputs:
            (self.givers.add if sign > 0 else self.givers.discard)(attempt.task)
        if attempt.id is not None:
            if sign > 0:
                self.task_of[attempt.id] = attempt.task
            else:
                self.task_of.pop(attempt.id, None)

    def apply(self, decision: Decision) -> None:
        """Take over a decision. O(changed attempts and their downstream edges)."""
        self.replace(decision.attempts.values())
        if decision.state is not None:
            self.state = decision.state
            self.reason = decision.reason
        self.started_at = decision.started_at or self.started_at
        self.admitted_at = decision.admitted_at or self.admitted_at
        self.warned_at = decision.warned_at or self.warned_at
        self.late_at = decision.late_at or self.late_at
        self.parent = decision.parent or self.parent

    def replace(self, attempts: Iterable[Attempt]) -> None:
        """Make these the newest attempts of their tasks; older numbers are ignored."""
        for attempt in attempts:
            current = self.attempts[attempt.task]
            if attempt.number < current.number:
                continue
            self._count(current, -1)
            self.attempts[attempt.task] = attempt
            self._count(attempt, +1)
