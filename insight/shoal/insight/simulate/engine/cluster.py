"""A cluster that is simulated: runs, the core's decisions about them, and what follows.

It does what masters and workers do, without processes: what ``decide`` returns is applied at once,
its actions and messages are performed in the same instant, and claims are as quick as the model's
groups say. What has no counterpart here is in docs/simulate.md.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from shoal.core.decide import decide
from shoal.core.runs.commands import CommandType, Parent
from shoal.core.runs.concurrency import group_of
from shoal.core.runs.events import (
    OF_WHOLE,
    Admitted,
    Begun,
    ChildChanged,
    Event,
    SlotGranted,
    StopRequested,
    TimeReached,
)
from shoal.core.runs.overlap import Moves
from shoal.core.runs.run import (
    Action,
    AskChild,
    AskSlot,
    Attempt,
    AttemptKey,
    Decision,
    Enqueue,
    Kill,
    Message,
    Run,
    StartChild,
    TellParent,
    WakeAt,
    Watch,
    Withdraw,
    WorkflowPlan,
)
from shoal.core.runs.states import (
    FINISHED_TASK,
    FINISHED_WORKFLOW,
    TaskState,
    WorkflowState,
)
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say
from shoal.insight.simulate.engine.admission import SimulatedAdmission
from shoal.insight.simulate.engine.agenda import Agenda
from shoal.insight.simulate.engine.arrivals import Arrival
from shoal.insight.simulate.engine.chance import key_of, mixed
from shoal.insight.simulate.engine.dependencies import SimulatedDependencies
from shoal.insight.simulate.engine.ledger import Ledger
from shoal.insight.simulate.engine.pool import Pools
from shoal.insight.simulate.engine.workers import OnClaim, Workers
from shoal.insight.simulate.engine.workflow import SimulatedWorkflow
from shoal.insight.simulate.model import GroupModel

DEEPEST = 20  # levels of sub-workflows, as masters allow them
_RELEASES = FINISHED_TASK | {TaskState.PAUSED}


@dataclass(slots=True)
class _About:
    """What is known of a run beside it. ``key`` names it for draws."""

    workflow: SimulatedWorkflow
    key: int
    wakes: set[datetime] = field(default_factory=set)  # at which it is decided again


class SimulatedCluster:
    """Plays ``arrivals``, which ascend in time, from ``start`` to ``end``.

    ``slots``: of concurrency groups, by qualified name. ``limit_s``: see ``Pool``.
    """

    def __init__(
        self,
        workflows: Mapping[str, SimulatedWorkflow],
        groups: Mapping[str, GroupModel],
        slots: Mapping[str, int],
        start: datetime,
        end: datetime,
        limit_s: float,
        on_claim: OnClaim | None = None,
    ) -> None:
        self.start, self.end = start, end
        self.ledger = Ledger(list(workflows))
        self.missing: Counter[str] = Counter()  # what tasks failed for that only history knows
        self._workflows = workflows
        self._agenda = Agenda(start)
        of_workers = {name: one.slots for name, one in groups.items()}
        self.groups = Pools(of_workers, start, end, limit_s)
        self.concurrency = Pools(slots, start, end, limit_s)
        self._workers = Workers(
            groups, self.groups, self._agenda, self.ledger, self._post, on_claim
        )
        self._admission = SimulatedAdmission({name: one.policy for name, one in workflows.items()})
        self.dependencies = SimulatedDependencies(workflows, start)
        self._runs: dict[int, Run] = {}  # open ones, and ended ones whose parent is open
        self._about: dict[int, _About] = {}  # the same runs
        self._children: dict[tuple[int, int], int] = {}  # (task instance, item) -> run
        self._family: defaultdict[int, list[int]] = defaultdict(list)  # run -> children
        self._inbox: deque[tuple[Run, Event]] = deque()
        self._to_judge: dict[int, None] = {}
        self._last_run = self._last_attempt = 0

    def play(self, arrivals: Iterator[Arrival]) -> None:
        """Simulate everything."""
        self._arrivals = arrivals
        self._next_arrival()
        self._agenda.run(self.end, self._settle)
        for pool in (*self.groups.values(), *self.concurrency.values()):
            pool.finish()
        still = [run for run in self._runs.values() if run.state not in FINISHED_WORKFLOW]
        self.ledger.finish([(self._about[run.id].workflow.name, run) for run in still], self.end)

    @property
    def now(self) -> datetime:
        return self._agenda.now

    @property
    def attempts(self) -> int:
        """How many attempts have begun."""
        return self._workers.attempts

    # -- runs ------------------------------------------------------------------------------------

    def _next_arrival(self) -> None:
        arrival = next(self._arrivals, None)
        if arrival is not None:
            self._agenda.add(arrival.at, self._arrive, arrival)

    def _arrive(self, arrival: Arrival) -> None:
        schedule = arrival.schedule
        given = schedule.parameters if schedule else arrival.parameters or {}
        since = arrival.logical_time if schedule else arrival.at
        self._create(
            self._workflows[arrival.workflow],
            arrival.key,
            logical_time=arrival.logical_time,
            timezone=arrival.timezone,
            priority=arrival.priority,
            given=given,
            due=since,
            by_schedule=schedule is not None,
            is_free=arrival.is_free,
        )
        self._next_arrival()

    def _create(
        self,
        workflow: SimulatedWorkflow,
        key: int,
        *,
        logical_time: datetime,
        timezone: str,
        priority: int | None,
        given: Mapping[str, str],
        due: datetime,
        parent: Parent | None = None,
        by_schedule: bool = False,
        is_free: bool = False,
    ) -> None:
        """Make a run, unless its workflow's policy refuses it; let it begin if it may."""
        name, now = workflow.name, self.now
        is_open = is_free or self._admission.is_open(name)
        reason = None if is_open else self._admission.refusal(name)
        if reason is None:
            try:
                launched = workflow.launch(given, data=not by_schedule)
            except ValueError as error:
                reason = f"parameters do not fit: {error}"
        if reason is not None:
            self.ledger.refused(name, reason)
            if parent is not None:
                self._tell(parent, None, None, reason)
            return
        run = self._new_run(workflow.plan, now, logical_time, timezone, priority)
        run.parameters, run.startup = launched.parameters, launched.startup
        run.parent, run.deadline_at = parent, workflow.deadline_at(due, timezone)
        self._about[run.id] = _About(workflow, key)
        self._runs[run.id] = run
        self.ledger.created(name, run)
        self.dependencies.created(run)
        if parent is not None:
            self._family[parent.instance_id].append(run.id)
            self._children[parent.task_instance_id, parent.index] = run.id
        moves = Moves()
        if is_open:
            run.admitted_at = now
            self._admission.begins(name, run.id)
        else:
            moves = self._admission.enter(name, run)
            if run.id in moves.admit:
                run.admitted_at = now
            elif parent is not None:
                self._tell(parent, run.id, WorkflowState.QUEUED, None)
        self._post(run, Begun(now))
        self._move(moves, run.id)

    def _new_run(
        self,
        plan: WorkflowPlan,
        now: datetime,
        logical_time: datetime,
        timezone: str,
        priority: int | None,
    ) -> Run:
        self._last_run += 1
        first = self._last_attempt + 1
        self._last_attempt += len(plan.tasks)
        return Run(
            id=self._last_run,
            plan=plan,
            state=WorkflowState.QUEUED,
            partition=0,
            attempts={task: Attempt(task, 1, id=i) for i, task in enumerate(plan.tasks, first)},
            created_at=now,
            logical_time=logical_time,
            timezone=timezone,
            priority=int(plan.spec.priority if priority is None else priority),
        )

    def _move(self, moves: Moves, newcomer: int = 0) -> None:
        """Do what an overlap policy has decided."""
        for run_id in moves.admit:
            if run_id != newcomer:
                self._post(self._runs[run_id], Admitted(self.now))
        for run_id in moves.supersede:
            reason = say(Code.REASON_SUPERSEDED, instance=moves.by)
            self._post(self._runs[run_id], StopRequested(self.now, reason))
        for run_id in moves.replace:
            reason = say(Code.REASON_REPLACED, instance=moves.by)
            self._post(self._runs[run_id], StopRequested(self.now, reason))

    # -- decisions -------------------------------------------------------------------------------

    def _post(self, run: Run, event: Event) -> None:
        self._inbox.append((run, event))

    def _settle(self) -> None:
        """Do everything that follows in this instant."""
        while True:
            while self._inbox:
                self._decide(*self._inbox.popleft())
            now = self.now
            if self.concurrency.touched:
                for turn in self.concurrency.turns(now):
                    self._post(turn.run, SlotGranted(turn.task_instance_id, now))
                self.concurrency.settle(now)
            elif self._to_judge:
                self._judge()
            else:
                before = self.attempts
                for turn in self.groups.turns(now):
                    about = self._about[turn.run.id]
                    self._workers.begin(turn, about.workflow, about.key)
                if self.attempts == before:
                    break
        self.groups.settle(self.now)

    def _decide(self, run: Run, event: Event) -> None:
        about, before = self._about.get(run.id), run.state
        if about is None:
            return  # it has ended, and no request can continue it
        decision = decide(run, event)
        if decision.refusal is None and decision.attempts:
            decision = self._with_ids(decision)
        run.apply(decision)
        for message in decision.messages:
            self._send(run, message)
        for action in decision.actions:
            self._act(run, action)
        if decision.attempts and (about.workflow.shares or run.plan.kinds):
            self._after(run, decision)
        if decision.state is not None:
            if decision.finished_at is not None:
                self._end(run)
            elif before in FINISHED_WORKFLOW:
                self.ledger.goes_on(run)
                self._admission.begins(about.workflow.name, run.id)
        if decision.attempts or decision.state is not None:
            for task_instance_id in self.dependencies.changed(run):
                self._to_judge[task_instance_id] = None

    def _with_ids(self, decision: Decision) -> Decision:
        """Give ids to new attempts, as the database does."""
        new = [key for key, attempt in decision.attempts.items() if attempt.id is None]
        if not new:
            return decision
        attempts = dict(decision.attempts)
        for key in new:
            self._last_attempt += 1
            attempts[key] = attempts[key].changed(id=self._last_attempt)
        return replace(decision, attempts=attempts)

    def _after(self, run: Run, decision: Decision) -> None:
        """Free slots of concurrency groups, and note what the simulation cannot know."""
        for attempt in decision.attempts.values():
            group = group_of(run, attempt.task) if attempt.state in _RELEASES else None
            if group is not None and group in self.concurrency and attempt.id is not None:
                self.concurrency.withdraw(group, attempt.id)
                self.concurrency.release(group, attempt.id, self.now)
            if attempt.state is not TaskState.FAILED or attempt.task not in run.plan.kinds:
                continue
            # A task of the master that fails by itself: mostly it lacks outputs of other tasks.
            by_others = attempt.detail.get("children") or attempt.detail.get("items")
            if attempt.reason and attempt.termination is None and not by_others:
                kind, name = run.plan.kinds[attempt.task], self._about[run.id].workflow.name
                what = f"{name}: the {kind} task {attempt.task} fails: {attempt.reason}"
                self.missing[what] += 1

    def _end(self, run: Run) -> None:
        """A run has ended. It is kept while its parent may let it go on."""
        parent = run.parent
        is_kept = parent is not None and _is_open(self._runs.get(parent.instance_id))
        name = self._about[run.id].workflow.name
        self.ledger.ended(name, run, self.now, may_go_on=is_kept)
        if not is_kept:
            self._forget(run)
        self._move(self._admission.ends(name, run.id))

    def _forget(self, run: Run) -> None:
        for child_id in self._family.pop(run.id, ()):
            child = self._runs.get(child_id)
            if child is not None and child.state in FINISHED_WORKFLOW:
                self._forget(child)
        self._runs.pop(run.id, None)
        self._about.pop(run.id, None)
        if run.parent is not None:
            self._children.pop((run.parent.task_instance_id, run.parent.index), None)

    # -- actions ---------------------------------------------------------------------------------

    def _act(self, run: Run, action: Action) -> None:
        match action:
            case Enqueue(key):
                if (attempt := _current(run, key, TaskState.QUEUED)) is not None:
                    self._wait(self.groups, run.plan.tasks[attempt.task].worker_group, run, attempt)
            case Withdraw(key):
                attempt = run.attempts[key[0]]
                group = run.plan.tasks[key[0]].worker_group
                if attempt.number == key[1] and attempt.id is not None:
                    self.groups.withdraw(group, attempt.id)
            case Kill(key, _):
                attempt = run.attempts[key[0]]
                if attempt.number == key[1]:
                    self._workers.kill(run, attempt)
            case WakeAt(at):
                wakes = self._about[run.id].wakes
                if at not in wakes and at < self.end:
                    wakes.add(at)
                    self._agenda.add(at, self._wake, (run, at))
            case AskSlot(key, _):
                if (attempt := _current(run, key, TaskState.BLOCKED)) is not None:
                    self._wait(self.concurrency, group_of(run, attempt.task) or "", run, attempt)
            case Watch(key):
                attempt = run.attempts[key[0]]
                if attempt.number == key[1] and attempt.id is not None:
                    self.dependencies.watch(run, attempt.task, attempt.id)
                    self._to_judge[attempt.id] = None

    def _wake(self, due: tuple[Run, datetime]) -> None:
        run, at = due
        about = self._about.get(run.id)
        if about is not None:
            about.wakes.discard(at)
            self._post(run, TimeReached(self.now))

    def _wait(self, pools: Pools, name: str, run: Run, attempt: Attempt) -> None:
        """Let an attempt wait for a slot of a pool."""
        workflow = self._about[run.id].workflow
        place = (run.priority, run.id, workflow.priorities[attempt.task], attempt.id or 0)
        pools.put(name, place, workflow.name, run, attempt.task, self.now)

    # -- messages and dependencies ---------------------------------------------------------------

    def _send(self, run: Run, message: Message) -> None:
        match message:
            case StartChild():
                self._start_child(run, message)
            case AskChild(key, index, type_, instance_id, number):
                parent = self._parent(run, key, index, number)
                if instance_id is None and parent is not None:
                    instance_id = self._children.get((parent.task_instance_id, index))
                child = self._runs.get(instance_id or 0)
                if child is None or parent is None:
                    return  # the refusal of its start has been sent
                if type_ is CommandType.STOP:
                    self._post(child, StopRequested(self.now, None, parent))
                else:
                    self._post(child, OF_WHOLE[type_](self.now, parent))
            case TellParent(parent, state, reason, outputs, refused):
                self._tell(parent, run.id, state, reason, outputs, refused=refused)

    def _start_child(self, run: Run, start: StartChild) -> None:
        parent = self._parent(run, start.key, start.index)
        if parent is None:
            return
        name = f"{start.project}/{start.workflow}"
        workflow = self._workflows.get(name)
        if parent.depth > DEEPEST:
            self._tell(parent, None, None, f"sub-workflows are nested deeper than {DEEPEST} levels")
        elif workflow is None:
            own = self._about[run.id].workflow.name
            self.missing[f"{own}: its task {start.key[0]} starts {name}, which is not there"] += 1
            self._tell(parent, None, None, f"there is no workflow {name}")
        else:
            if start.version is not None:
                own, which = self._about[run.id].workflow.name, f"version {start.version} of {name}"
                what = f"{own}: its task {start.key[0]} starts {which}; the newest is simulated"
                self.missing[what] += 1
            key = mixed(self._about[run.id].key, key_of(start.key[0]), start.key[1], start.index)
            self._create(
                workflow,
                key,
                logical_time=run.logical_time,
                timezone=run.timezone,
                priority=run.priority,
                given=start.parameters,
                due=self.now,
                parent=parent,
            )

    def _parent(self, run: Run, key: AttemptKey, index: int, ask: int = 0) -> Parent | None:
        attempt = run.attempts[key[0]]
        if attempt.number != key[1] or attempt.id is None:
            return None
        depth = 1 if run.parent is None else run.parent.depth + 1
        return Parent(run.id, attempt.id, run.partition, index, depth, ask)

    def _tell(
        self,
        parent: Parent,
        instance_id: int | None,
        state: WorkflowState | None,
        reason: str | None,
        outputs: Mapping[str, str] | None = None,
        *,
        refused: bool = False,
    ) -> None:
        """Report how a sub-workflow stands to the task that it works for."""
        receiver = self._runs.get(parent.instance_id)
        if receiver is not None:
            event = ChildChanged(
                task_instance_id=parent.task_instance_id,
                index=parent.index,
                at=self.now,
                instance_id=instance_id,
                state=state,
                reason=reason,
                outputs=outputs or {},
                ask=None if state is None else parent.ask,
                refused=refused,
            )
            self._post(receiver, event)

    def _judge(self) -> None:
        """Judge the DEPENDENT tasks whose runs have changed."""
        ids, self._to_judge = self._to_judge, {}
        for task_instance_id in ids:
            judged = self.dependencies.judge(task_instance_id, self.now)
            if judged is not None:
                self._post(*judged)


def _is_open(run: Run | None) -> bool:
    return run is not None and run.state not in FINISHED_WORKFLOW


def _current(run: Run, key: AttemptKey, state: TaskState) -> Attempt | None:
    """Return an attempt if it is still the newest of its task, and in a state."""
    attempt = run.attempts[key[0]]
    is_current = attempt.number == key[1] and attempt.state is state and attempt.id is not None
    return attempt if is_current else None
