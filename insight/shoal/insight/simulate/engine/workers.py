"""The workers of a simulated cluster: they begin attempts, which end as was drawn."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from shoal.core.runs.events import Event, TaskEnded, TaskStarted
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.states import TaskSignal, next_task_state
from shoal.insight.simulate.engine.agenda import Agenda
from shoal.insight.simulate.engine.ledger import Ledger
from shoal.insight.simulate.engine.outcomes import SimulatedOutcome, within_timeout
from shoal.insight.simulate.engine.pool import Pools, Turn
from shoal.insight.simulate.engine.workflow import SimulatedWorkflow
from shoal.insight.simulate.model import GroupModel

WORKER = "simulated"  # the name of all workers: which one it is makes no difference here

# What a caller may want to know of each claim: the key of the run, the group, the attempt, and its
# wait in seconds, from the queue to the start of its program.
OnClaim = Callable[[int, str, Attempt, float], None]


class Workers:
    """Take attempts out of the worker groups. ``post`` reports to a run what became of them."""

    def __init__(
        self,
        models: Mapping[str, GroupModel],
        groups: Pools,
        agenda: Agenda,
        ledger: Ledger,
        post: Callable[[Run, Event], None],
        on_claim: OnClaim | None,
    ) -> None:
        self.attempts = 0  # that have begun
        self._models, self._groups, self._on_claim = models, groups, on_claim
        self._agenda, self._ledger, self._post = agenda, ledger, post
        self._working: dict[int, tuple[Run, SimulatedOutcome]] = {}  # by task instance id

    def begin(self, turn: Turn, workflow: SimulatedWorkflow, key: int) -> None:
        """Claim an attempt: it starts a little later, and ends as was drawn. ``key``: of draws."""
        run, now, task_instance_id = turn.run, self._agenda.now, turn.task_instance_id
        self.attempts += 1
        attempt, spec = run.attempts[turn.task], run.plan.tasks[turn.task]
        group = spec.worker_group
        start_s = self._models[group].start_s
        self._ledger.of[workflow.name].waits.append(turn.wait_s)
        outcome = workflow.outcomes[turn.task].of(key, attempt)
        if spec.timeout is not None:
            outcome = within_timeout(outcome, spec, attempt)
        if self._on_claim is not None:
            self._on_claim(key, group, attempt, turn.wait_s + start_s)
        self._working[task_instance_id] = (run, outcome)
        ends_at = now + timedelta(seconds=start_s + outcome.seconds)
        self._agenda.add(ends_at, self._finish, task_instance_id)
        claim(run, attempt)
        if spec.timeout is not None:  # else nothing depends on when it has started
            starts_at = now + timedelta(seconds=start_s)
            self._agenda.add(starts_at, self._started, task_instance_id)

    def kill(self, run: Run, attempt: Attempt) -> None:
        """End an attempt, if a worker has it."""
        if attempt.id in self._working:
            self._stop(attempt.id)
            self._post(run, TaskEnded(attempt.id, TaskSignal.KILL, self._agenda.now, WORKER))

    def _started(self, task_instance_id: int) -> None:
        if task_instance_id in self._working:
            run, _ = self._working[task_instance_id]
            self._post(run, TaskStarted(task_instance_id, WORKER, self._agenda.now))

    def _finish(self, task_instance_id: int) -> None:
        if task_instance_id not in self._working:
            return  # it was killed
        run, outcome = self._stop(task_instance_id)
        self._post(
            run,
            TaskEnded(
                task_instance_id,
                outcome.signal,
                self._agenda.now,
                WORKER,
                outputs=outcome.outputs,
                again_s=outcome.again_s,
            ),
        )

    def _stop(self, task_instance_id: int) -> tuple[Run, SimulatedOutcome]:
        run, outcome = self._working.pop(task_instance_id)
        group = run.plan.tasks[run.task_of[task_instance_id]].worker_group
        self._groups.release(group, task_instance_id, self._agenda.now)
        return run, outcome


def claim(run: Run, attempt: Attempt) -> None:
    """Do what ``decide`` makes of TaskClaimed: nothing follows from it, and a test compares both.

    It is a third of all events, and this takes a third of the time.
    """
    state = next_task_state(attempt.state, TaskSignal.CLAIM)
    run.replace([attempt.changed(state=state, worker=WORKER)])
