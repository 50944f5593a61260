"""Overlap policies at work: which runs of a workflow are active and which wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shoal.core.definition.model import Overlap
from shoal.core.runs.overlap import Lineup, Moves, OverlapPolicy, Waiter, refusal, settle
from shoal.core.runs.run import Run


@dataclass
class _WorkflowQueue:
    """The unfinished runs of one workflow whose policy matters."""

    policy: OverlapPolicy
    active: dict[int, None] = field(default_factory=dict)
    stopping: set[int] = field(default_factory=set)
    waiting: dict[int, Waiter] = field(default_factory=dict)

    def settle(self) -> Moves:
        replaceable = tuple(run for run in self.active if run not in self.stopping)
        waiting = tuple(self.waiting.values())
        moves = settle(self.policy, Lineup(len(self.active), waiting, len(waiting), replaceable))
        for run in moves.admit:
            del self.waiting[run]
            self.active[run] = None
        for run in moves.supersede:
            del self.waiting[run]
        self.stopping.update(moves.replace)
        return moves


class SimulatedAdmission:
    """The lines of all workflows, by name, as ``master/services/admission.py`` keeps them."""

    def __init__(self, policies: Mapping[str, OverlapPolicy]) -> None:
        self._lines = {
            name: _WorkflowQueue(policy)
            for name, policy in policies.items()
            if policy.overlap is not Overlap.ALLOW
        }

    def is_open(self, workflow: str) -> bool:
        """Whether a new run starts at once, beside any others."""
        return workflow not in self._lines

    def refusal(self, workflow: str) -> str | None:
        """Return why one more run is refused; None: it is not."""
        line = self._lines[workflow]
        return refusal(line.policy, len(line.active), len(line.waiting))

    def enter(self, workflow: str, run: Run) -> Moves:
        """Let a run that was created, not admitted, take its place."""
        line = self._lines[workflow]
        line.waiting[run.id] = Waiter(run.id, run.priority, run.logical_time)
        return line.settle()

    def begins(self, workflow: str, run_id: int) -> None:
        """Count a run as active that was admitted by no policy, or goes on after its end."""
        if workflow in self._lines:
            self._lines[workflow].active[run_id] = None

    def ends(self, workflow: str, run_id: int) -> Moves:
        """A run has ended: return what that allows."""
        line = self._lines.get(workflow)
        if line is None:
            return Moves()
        line.active.pop(run_id, None)
        line.waiting.pop(run_id, None)
        line.stopping.discard(run_id)
        return line.settle()
