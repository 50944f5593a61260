"""What new instances begin with, decided in the transaction that creates them."""

from collections.abc import Iterable
from datetime import datetime

from shoal.core.decide import decide
from shoal.core.events import Begun
from shoal.core.run import Decision, Run


def begin(runs: Iterable[Run], at: datetime) -> dict[int, Decision]:
    """Decide what new runs begin with, and apply it; return it by instance id.

    The caller stores both together. Left out is whoever needs more of the engine than that, or
    waits for others: they begin as runs do that are taken over.
    """
    begun: dict[int, Decision] = {}
    for run in runs:
        decision = _decision(run, at)
        if decision is not None and _is_plain(decision):
            run.apply(decision)
            begun[run.id] = decision
    return begun


def _decision(run: Run, at: datetime) -> Decision | None:
    if run.admitted_at is None:
        return None
    try:
        return decide(run, Begun(at))
    except Exception:  # noqa: BLE001 - the engine meets it again, and quarantines the run
        return None


def _is_plain(decision: Decision) -> bool:
    """Whether it sends nothing, ends nothing and makes no attempts."""
    is_new = any(attempt.id is None for attempt in decision.attempts.values())
    return decision.finished_at is None and not decision.messages and not is_new
