"""What is noted of runs while a simulation goes on, by workflow."""

from array import array
from dataclasses import dataclass, field
from datetime import datetime

from shoal.core.runs.run import Run
from shoal.core.runs.states import WorkflowState

MOST_REASONS = 3  # kept for each workflow


@dataclass(slots=True)
class Notes:
    """The runs of one workflow. Arrays hold seconds.

    ``late``: what those that ended too late, or go on, are beyond their deadline. ``reasons``: why
    runs failed or were refused, the first few, each with how often.
    """

    runs: int = 0
    refused: int = 0
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    unfinished: int = 0
    with_deadline: int = 0
    lasted: "array[float]" = field(default_factory=lambda: array("d"))
    waits: "array[float]" = field(default_factory=lambda: array("d"))  # of its tasks, for workers
    admission: "array[float]" = field(default_factory=lambda: array("d"))  # for other runs
    late: "array[float]" = field(default_factory=lambda: array("d"))
    first_late_at: datetime | None = None  # the earliest deadline that was missed
    reasons: dict[str, int] = field(default_factory=dict)


class Ledger:
    """Notes by workflow. A run that goes on after its end counts once, by its last end."""

    def __init__(self, workflows: list[str]) -> None:
        self.of: dict[str, Notes] = {name: Notes() for name in workflows}
        self._ended: dict[int, tuple[str, Run, datetime]] = {}  # that may go on

    def created(self, name: str, run: Run) -> None:
        """A run was made."""
        notes = self.of[name]
        notes.runs += 1
        notes.with_deadline += run.deadline_at is not None

    def refused(self, name: str, reason: str) -> None:
        """A run was not made."""
        notes = self.of[name]
        notes.refused += 1
        _note_reason(notes, reason)

    def ended(self, name: str, run: Run, at: datetime, *, may_go_on: bool) -> None:
        """A run has ended."""
        if may_go_on:
            self._ended[run.id] = (name, run, at)
        else:
            self._count(name, run, at)

    def goes_on(self, run: Run) -> None:
        """A run goes on that had ended."""
        self._ended.pop(run.id, None)

    def finish(self, open_runs: list[tuple[str, Run]], end: datetime) -> None:
        """Count what has not been counted when the simulation ends."""
        for name, run, at in self._ended.values():
            self._count(name, run, at)
        self._ended.clear()
        for name, run in open_runs:
            notes = self.of[name]
            notes.unfinished += 1
            if run.admitted_at is None:
                notes.admission.append((end - run.created_at).total_seconds())
            self._note_lateness(notes, run, end)

    def _count(self, name: str, run: Run, at: datetime) -> None:
        notes = self.of[name]
        match run.state:
            case WorkflowState.SUCCEEDED:
                notes.succeeded += 1
            case WorkflowState.FAILED:
                notes.failed += 1
                _note_reason(notes, run.reason or "")
            case _:
                notes.stopped += 1
        if run.started_at is not None:
            notes.lasted.append((at - run.started_at).total_seconds())
        if run.admitted_at is not None:
            notes.admission.append((run.admitted_at - run.created_at).total_seconds())
        self._note_lateness(notes, run, at)

    @staticmethod
    def _note_lateness(notes: Notes, run: Run, at: datetime) -> None:
        deadline = run.deadline_at
        if deadline is None or at <= deadline:
            return
        notes.late.append((at - deadline).total_seconds())
        notes.first_late_at = min(notes.first_late_at or deadline, deadline)


def _note_reason(notes: Notes, reason: str) -> None:
    if reason in notes.reasons or len(notes.reasons) < MOST_REASONS:
        notes.reasons[reason] = notes.reasons.get(reason, 0) + 1
