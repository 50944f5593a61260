"""Everything that the judges look at, as plain values.

States, strategies and rules are words here, not Shoal's own types: the judges state the rules for
themselves, so that a mistake in Shoal's tables does not excuse itself.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.chaos.records import FaultRecord
from tests.chaos.workload.ledger import Kind, Row, Run, runs
from tests.chaos.workload.workload import Asked, Edit

FINAL_TASK = frozenset({"SUCCEEDED", "FAILED", "KILLED", "LOST", "SKIPPED"})
FINAL_INSTANCE = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})


@dataclass(frozen=True)
class Command:
    """A row of ``command``. Times here and below are seconds since boot."""

    id: int
    type: str
    key: str
    state: str
    instance_id: int | None = None
    result_instance_id: int | None = None
    schedule_id: int | None = None
    logical_time: str | None = None
    handled_s: float | None = None
    by_parent: bool = False  # asked for by the task that has started the instance


@dataclass(frozen=True)
class Task:
    """One task of a definition."""

    name: str
    depends_on: tuple[str, ...] = ()
    run_when: str = "all_success"
    enabled: bool = True
    retries: int = 0
    timeout: float | None = None
    lines: int = 0  # what it prints, see task.py
    group: str | None = None  # whose slots it needs
    children: int | None = None  # instances that it starts, for the master runs it; None: a process
    hands_over: bool = False  # a file, with its success


@dataclass(frozen=True)
class Instance:
    """A row of ``workflow_instance`` with what its version says."""

    id: int
    state: str
    partition: int
    command_id: int
    strategy: str
    tasks: Mapping[str, Task]
    workflow: str = ""
    overlap: str = "allow"
    parent: tuple[int, int] | None = None  # task instance that has started it, and index
    backfill: tuple[int, str] | None = None  # the backfill, and the date


@dataclass(frozen=True)
class Backfill:
    """A row of ``backfill`` with its dates."""

    id: int
    command_id: int
    state: str
    parallel: int
    dates: Mapping[str, str]  # date -> state


@dataclass(frozen=True)
class Attempt:
    """A row of ``task_instance``."""

    id: int
    instance: int
    task: str
    number: int
    state: str
    worker: str | None = None
    exit_code: int | None = None
    failures: int = 0
    losses: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Version:
    """A row of ``resource`` that an attempt has made."""

    path: str
    number: int
    sha256: str
    object: str  # its name in the storage
    instance: int


@dataclass(frozen=True)
class Change:
    """An event: an instance (``attempt`` None) or an attempt has a new state."""

    id: int
    at_s: float
    instance: int
    state: str
    task: str | None = None
    attempt: int | None = None
    previous: str | None = None  # of instances only; None: it was created


@dataclass(frozen=True)
class Step:
    """What a trigger in the database saw: a row's state, or a partition's epoch, changed."""

    table: str
    row: int
    before: str
    after: str


@dataclass(frozen=True)
class Evidence:
    """All that is known about one run of the suite."""

    commands: Sequence[Command] = ()
    instances: Mapping[int, Instance] = field(default_factory=dict)
    attempts: Sequence[Attempt] = ()
    changes: Sequence[Change] = ()  # in order
    epochs: Mapping[int, int] = field(default_factory=dict)  # of partitions, at the end
    steps: Sequence[Step] = ()  # in order; empty without triggers
    rows: Sequence[Row] = ()
    asked: Sequence[Asked] = ()
    faults: Sequence[FaultRecord] = ()
    slots: Mapping[str, int] = field(default_factory=dict)  # of concurrency groups, by name
    backfills: Sequence[Backfill] = ()
    session_timeout_s: float = 10.0  # Shoal's default
    edits: Sequence[Edit] = ()  # in order
    versions: Sequence[Version] = ()  # that attempts have handed over

    @cached_property
    def runs(self) -> Sequence[Run]:
        """The ledger's runs by the time of their start."""
        return runs(self.rows)

    @cached_property
    def runs_of(self) -> Mapping[int, Sequence[Run]]:
        """Runs by task-instance id."""
        return _grouped(self.runs, lambda run: run.start.task_instance_id)

    @cached_property
    def runs_of_task(self) -> Mapping[tuple[int, str], Sequence[Run]]:
        """Runs by instance and task."""
        return _grouped(self.runs, lambda run: (run.start.instance, run.start.task))

    @cached_property
    def duplicates(self) -> Sequence[Row]:
        return [row for row in self.rows if row.kind is Kind.DUPLICATE]

    @cached_property
    def children_of(self) -> Mapping[int, Sequence[Instance]]:
        """Instances that a task instance has started."""
        nested = [one for one in self.instances.values() if one.parent is not None]
        return _grouped(nested, lambda one: one.parent[0])

    def task_of(self, attempt: Attempt) -> Task | None:
        """Return the definition of an attempt's task."""
        instance = self.instances.get(attempt.instance)
        return None if instance is None else instance.tasks.get(attempt.task)

    @cached_property
    def attempt_by_id(self) -> Mapping[int, Attempt]:
        return {attempt.id: attempt for attempt in self.attempts}

    @cached_property
    def attempts_of(self) -> Mapping[tuple[int, str], Sequence[Attempt]]:
        """Attempts by instance and task, by their numbers."""
        ordered = sorted(self.attempts, key=lambda attempt: attempt.number)
        return _grouped(ordered, lambda attempt: (attempt.instance, attempt.task))

    @cached_property
    def changes_of(self) -> Mapping[int, Sequence[Change]]:
        """Changes by instance, in order."""
        return _grouped(self.changes, lambda change: change.instance)

    @cached_property
    def commands_of(self) -> Mapping[int | None, Sequence[Command]]:
        """Commands that speak of an existing instance, by instance."""
        return _grouped(self.commands, lambda command: command.instance_id)

    def newest(self, instance: int) -> Mapping[str, Attempt]:
        """Return the newest attempt of each task of an instance that has any."""
        tasks = self.instances[instance].tasks
        return {
            task: self.attempts_of[instance, task][-1]
            for task in tasks
            if (instance, task) in self.attempts_of
        }


def _grouped(items: Sequence[Any], key: Any) -> Mapping[Any, Sequence[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)
