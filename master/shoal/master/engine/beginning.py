"""How a run begins.

``Begun`` is decided for each run that the engine adopts: new ones, those of a partition that was
taken over, and those that a failed store threw out of memory. For new runs it is decided here, so
that the transaction that creates them stores what they begin with; the engine adopts them with
that decision, and decides nothing again. A new run that cannot begin so is adopted without one,
and its ``Begun`` goes through the engine's batches like that of all others.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from shoal.core.decide import decide
from shoal.core.runs.events import Begun
from shoal.core.runs.run import Decision, Run

_MOST_AT_ONCE = 500  # tasks that are decided without a turn for others


async def first_decisions(runs: Sequence[Run], at: datetime) -> dict[int, Decision]:
    """Decide what new runs begin with, and apply it; return the decisions by instance id.

    The caller stores both together. Left out are runs that wait for others, and decisions that
    need more than a row: messages, an end, new attempts.
    """
    if sum(len(run.attempts) for run in runs) > _MOST_AT_ONCE:
        return await asyncio.to_thread(_decide_all, runs, at)  # nothing else knows these runs yet
    return _decide_all(runs, at)


def _decide_all(runs: Sequence[Run], at: datetime) -> dict[int, Decision]:
    begun: dict[int, Decision] = {}
    for run in runs:
        decision = _decide(run, at)
        if decision is not None and _is_plain(decision):
            run.apply(decision)
            begun[run.id] = decision
    return begun


def _decide(run: Run, at: datetime) -> Decision | None:
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
