"""Watch the runs that DEPENDENT tasks wait for.

A task that waits has rows in ``dependency_wait``, stored before its runs are read for the first
time. The master that commits the end of a run or the success of a task reads there which tasks
wait for the workflow, and notifies their partitions. So either the first check sees the end, or
the end's master sees the wait. Besides, each master regularly checks its tasks, a part of them
each time.

A check reads the runs for many tasks at once: a few queries for hundreds of tasks. About a
workflow that no task waits for, that question is asked only once in a while, however much of it
ends; but always after the last end.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

import structlog

from shoal.core.access.grants import Grant
from shoal.core.errors import ShoalError
from shoal.core.logic.dependency_rules import (
    DependencyJudgement,
    FoundRuns,
    Question,
    WorkflowName,
    items_of,
    judge,
    question_of,
)
from shoal.core.logic.dependent import DependentParams
from shoal.core.runs.events import DependencyJudged
from shoal.core.runs.run import Action, AttemptKey, Decision, Run, SkipCause, Watch
from shoal.core.runs.states import TaskState
from shoal.master.services.service import MasterContext, PeriodicService
from shoal.runtime import failpoints
from shoal.sql.driver.connection import batched
from shoal.sql.repositories.runs.dependencies import Range, Wait

log = structlog.get_logger()

_TASKS_AT_ONCE = 200  # checked with one set of queries
_TASKS_PER_POLL = 1_000  # checked by each regular poll
_POLLS_PER_SWEEP = 12  # regular polls between two searches for rows that are left over
# After a poll comes a pause, so that constant notifications cost at most a quarter of the time.
_PAUSE_S, _PAUSE_SHARE, _LONGEST_PAUSE_S = 0.05, 3, 2.0
# No task waited for a workflow: after this long the question is asked again.
_ASK_AGAIN_S = 1.0


@dataclass
class _Watched:
    """A DEPENDENT task of this master that waits."""

    task_instance_id: int
    instance_id: int
    partition: int
    question: Question
    names: frozenset[WorkflowName]
    registered: set[WorkflowName] = field(default_factory=set)  # has a row for these
    posted: DependencyJudgement | None = None  # the last one that the engine got


class DependencyWatcher(PeriodicService):
    """Judges the DEPENDENT tasks of one master."""

    name = "dependencies"

    def __init__(self, context: MasterContext) -> None:
        super().__init__(context.settings.scan_interval_s)
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners
        self._watched: dict[int, _Watched] = {}  # by task instance id
        self._by_partition: defaultdict[int, set[int]] = defaultdict(set)
        self._waiting_for: defaultdict[WorkflowName, set[int]] = defaultdict(set)
        self._to_check: set[int] = set()
        self._ended: set[WorkflowName] = set()  # waiting tasks of others are not notified yet
        self._ask_again_at: dict[WorkflowName, float] = {}  # if no task waited; monotonic
        self._ids: dict[WorkflowName, int] = {}  # workflows keep theirs for ever
        self._next = 0  # position of the regular polls
        self._polls = 0

    # -- what wakes it -----------------------------------------------------------------------

    def on_action(self, run: Run, action: Action) -> None:
        """Watch for a task from now on, whose start is stored by now."""
        if isinstance(action, Watch):
            self._watch(run, action.key)

    def _watch(self, run: Run, key: AttemptKey) -> None:
        task, number = key
        attempt = run.attempts[task]
        if attempt.number != number or attempt.id is None or attempt.state is not TaskState.RUNNING:
            return
        when = DependentParams.model_validate(run.plan.tasks[task].params).when
        base = run.logical_time.astimezone(ZoneInfo(run.timezone))
        question = question_of(when, base, run.plan.spec.project)
        names = frozenset(item.workflow for item in items_of(question))
        self._watched[attempt.id] = _Watched(attempt.id, run.id, run.partition, question, names)
        self._by_partition[run.partition].add(attempt.id)
        for name in names:
            self._waiting_for[name].add(attempt.id)
        self._check_soon({attempt.id})

    def on_stored(self, run: Run, decision: Decision) -> None:
        """Check the tasks that wait for a run or a task that has ended."""
        if decision.finished_at is not None or any(
            attempt.state is TaskState.SUCCEEDED or attempt.skip_cause is SkipCause.DISABLED
            for attempt in decision.attempts.values()
        ):
            self._has_ended((run.plan.spec.project, run.plan.spec.name))

    def _has_ended(self, name: WorkflowName) -> None:
        """Check our tasks that wait for a workflow, and soon ask which others do."""
        self._check_soon(self._waiting_for.get(name, ()))
        if name in self._ended:
            return  # that is about to be asked
        self._ended.add(name)
        wait_s = self._ask_again_at.get(name, 0.0) - time.monotonic()
        if wait_s <= 0:
            self._wakeup.notify()
        else:
            asyncio.get_running_loop().call_later(wait_s, self._wakeup.notify)

    def notify(self, partition: int) -> None:
        """Something that tasks of a partition wait for may have ended."""
        self._check_soon(self._by_partition.get(partition, ()))

    def _check_soon(self, task_instance_ids: Collection[int]) -> None:
        if task_instance_ids:
            self._to_check.update(task_instance_ids)
            self._wakeup.notify()

    # -- the loop ----------------------------------------------------------------------------

    async def poll(self, is_regular: bool) -> None:
        await self._notify_waiting()
        if is_regular:
            await self._tidy()
            self._check_soon(self._next_part())
        await self.check()

    def pause_s(self, took_s: float) -> float:
        return min(max(_PAUSE_S, took_s * _PAUSE_SHARE), _LONGEST_PAUSE_S)

    async def _notify_waiting(self) -> None:
        """Notify for the tasks of others that wait for what has ended."""
        now = time.monotonic()
        due = now + 0.01  # a timer may be a little early
        names = {name for name in self._ended if self._ask_again_at.get(name, 0.0) <= due}
        if not names:
            return
        self._ended -= names
        try:
            async with self._database.unit_of_work(read_only=True) as uow:
                waiting = await uow.dependencies.waiting_for(names)
        except ShoalError:
            self._ended |= names  # with the next poll
            raise
        for name in names:
            self._ask_again_at[name] = 0.0 if name in waiting else now + _ASK_AGAIN_S
        if others := set().union(*waiting.values()) - self._engine.epochs.keys():
            self._notify_owners(others)

    def _next_part(self) -> Sequence[int]:
        """Return the tasks whose turn it is in the regular polls."""
        tasks = sorted(self._watched)
        if self._next >= len(tasks):
            self._next = 0
        part = tasks[self._next : self._next + _TASKS_PER_POLL]
        self._next += _TASKS_PER_POLL
        return part

    async def check(self) -> None:
        """Find the runs that the tasks to be checked wait for, and post what they mean."""
        ids, self._to_check = self._to_check, set()
        tasks = [self._watched[i] for i in sorted(ids) if i in self._watched]
        for some in batched([one for one in tasks if self._still_waits(one)], _TASKS_AT_ONCE):
            try:
                await self._register(some)
                failpoints.hit("watch.before_look")
                found = await self._find(some)
            except ShoalError:
                self._to_check |= ids  # with the next regular poll
                raise
            self._judge(some, found)

    def _still_waits(self, one: _Watched) -> bool:
        run = self._engine.runs.get(one.instance_id)
        attempt = None if run is None else run.attempt_by_id(one.task_instance_id)
        return attempt is not None and attempt.state is TaskState.RUNNING

    # -- rows of waiting tasks ------------------------------------------------------------------

    async def _register(self, tasks: Sequence[_Watched]) -> None:
        """Store that these tasks wait, as far as their workflows exist. Raises Fenced."""
        new = [one for one in tasks if not one.names <= one.registered]
        if not new:
            return
        names = {name for one in new for name in one.names - one.registered}
        async with self._database.unit_of_work(read_only=True) as uow:
            unknown = names - self._ids.keys()
            self._ids.update(await uow.dependencies.workflow_ids(unknown))
        waits = [
            Wait(one.task_instance_id, self._ids[name], one.instance_id, one.partition)
            for one in new
            for name in sorted(one.names - one.registered)
            if name in self._ids
        ]
        if not waits:
            return
        async with self._database.unit_of_work() as uow:
            await uow.fence({w.partition: self._engine.epoch_of(w.partition) for w in waits})
            await uow.dependencies.register(waits)
            await uow.commit()
        for one in new:
            one.registered.update(one.names & self._ids.keys())

    async def _tidy(self) -> None:
        """Forget the tasks that no longer wait, and remove their rows. Raises Fenced."""
        over = {i: one for i, one in self._watched.items() if not self._still_waits(one)}
        for task_instance_id, one in over.items():
            del self._watched[task_instance_id]
            self._by_partition[one.partition].discard(task_instance_id)
            for name in one.names:
                self._waiting_for[name].discard(task_instance_id)
        gone = {i: one.partition for i, one in over.items()}
        if self._polls % _POLLS_PER_SWEEP == 0 and self._engine.epochs:
            async with self._database.unit_of_work(read_only=True) as uow:
                gone |= await uow.dependencies.leftovers(self._engine.epochs)
        self._polls += 1
        # The present owners of the others see to them.
        ours = self._engine.epochs
        gone = {i: p for i, p in gone.items() if p in ours and i not in self._watched}
        if not gone:
            return
        async with self._database.unit_of_work() as uow:
            await uow.fence({p: self._engine.epoch_of(p) for p in gone.values()})
            await uow.dependencies.forget(gone)
            await uow.commit()

    # -- what there is -----------------------------------------------------------------------

    async def _find(self, tasks: Sequence[_Watched]) -> "_VisibleRuns":
        """Return the runs that any of these tasks may mean."""
        ranges: defaultdict[int, set[Range]] = defaultdict(set)
        named: set[str] = set()
        for one in tasks:
            for item in items_of(one.question):
                if item.workflow in self._ids:
                    windows = ((window.start, window.end) for window in item.windows)
                    ranges[self._ids[item.workflow]].update(windows)
                if item.task is not None:
                    named.add(item.task)
        names = {name for one in tasks for name in one.names}
        pairs = {(project, self._project_of(one)) for one in tasks for project, _ in one.names}
        async with self._database.unit_of_work(read_only=True) as uow:
            runs = await uow.dependencies.runs(_merged(ranges), named)
            given = await uow.grants.given(pairs, Grant.SEE)
        found = {n: runs.get(self._ids[n], []) if n in self._ids else None for n in names}
        return _VisibleRuns(found, given)

    def _project_of(self, one: _Watched) -> str:
        """Return the project of the instance that waits; "" if it is open no more."""
        run = self._engine.runs.get(one.instance_id)
        return "" if run is None else run.plan.spec.project

    def _judge(self, tasks: Sequence[_Watched], found: "_VisibleRuns") -> None:
        now = self._clock()
        for one in tasks:
            try:
                judgement = judge(
                    one.question, found.seen_from(self._project_of(one)), one.instance_id
                )
            except Exception as error:  # noqa: BLE001 - of this run alone
                if (run := self._engine.runs.get(one.instance_id)) is not None:
                    self._engine.quarantine_run(run, error)
                continue
            if judgement == one.posted:
                continue
            failpoints.hit("watch.before_post")
            one.posted = judgement
            event = DependencyJudged(
                one.task_instance_id,
                judgement.verdict,
                now,
                judgement.reason,
                judgement.detail,
            )
            self._engine.post(one.partition, one.instance_id, event)


@dataclass(frozen=True)
class _VisibleRuns:
    """The runs of workflows, and which projects let which others see theirs."""

    runs: FoundRuns
    given: frozenset[tuple[str, str]]

    def seen_from(self, project: str) -> FoundRuns:
        """Return what the tasks of a project may see: the rest is as if it were not there."""
        return {
            name: runs if (name[0], project) in self.given else None
            for name, runs in self.runs.items()
        }


def _merged(ranges: Mapping[int, Collection[Range]]) -> dict[int, list[Range]]:
    """Join the ranges of each workflow that overlap or touch."""
    merged: dict[int, list[Range]] = {}
    for workflow_id, some in ranges.items():
        joined: list[Range] = []
        for start, end in sorted(some):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        merged[workflow_id] = joined
    return merged
