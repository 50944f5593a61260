"""What new instances begin with, decided in the transaction that creates them."""

from collections.abc import Iterable
from datetime import datetime

from shoal.core.decide import decide
from shoal.core.runs.events import Begun
from shoal.core.runs.run import Decision, Run


class Beginning:
    """Decides what the runs of one transaction begin with, and applies it.

    The caller stores both together. Left out is whoever needs more of the engine than that, or
    waits for others: they begin as runs do that are taken over.
    """

    def __init__(self, at: datetime) -> None:
        self._at = at
        self.decisions: dict[int, Decision] = {}  # of all runs that have begun, by instance id

    def __call__(self, runs: Iterable[Run]) -> dict[int, Decision]:
        """Let those of ``runs`` begin that can; return their decisions by instance id."""
        begun: dict[int, Decision] = {}
        for run in runs:
            decision = self._decision(run)
            if decision is not None and _is_plain(decision):
                run.apply(decision)
                begun[run.id] = decision
        self.decisions.update(begun)
        return begun

    def _decision(self, run: Run) -> Decision | None:
        if run.admitted_at is None:
            return None
        try:
            return decide(run, Begun(self._at))
        except Exception:  # noqa: BLE001 - the engine meets it again, and quarantines the run
            return None


def _is_plain(decision: Decision) -> bool:
    """Whether it sends nothing, ends nothing and makes no attempts."""
    is_new = any(attempt.id is None for attempt in decision.attempts.values())
    return decision.finished_at is None and not decision.messages and not is_new
