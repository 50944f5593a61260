"""How long a test may wait in vain: briefly, as mutants let it, and yet long enough.

What a mutant never does is waited for until the deadline of ``waiting``. So each killer
gets the shortest one of ``LADDER`` under which it passes *without* a mutation, ``MARGIN`` times
quicker than that: then no machine that is about as quick as it was a minute ago makes it fail.
On a slow one the deadlines are longer, by themselves.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.waiting import DEADLINE_S

LADDER = (10.0, 20.0, 40.0, DEADLINE_S)
MARGIN = 3.0


@dataclass(frozen=True)
class Patience:
    """Of one killer: the deadline of its waits, and how long all of it took under that."""

    deadline_s: float
    took_s: float


def longer(deadline_s: float, took_s: float | None) -> float | None:
    """Return the deadline to try next, None if ``deadline_s`` was long enough.

    ``took_s``: of the slowest case of the killer; None if it did not pass. There is nothing
    longer than the last of ``LADDER``: who passes under that has what it has in every test run.
    """
    if took_s is not None and took_s * MARGIN <= deadline_s:
        return None
    above = [step for step in LADDER if step > deadline_s]
    return next(
        (step for step in above if (took_s or 0.0) * MARGIN <= step), max(above, default=None)
    )


def described(found: Iterable[Patience]) -> str:
    """Return in words how many killers got which deadline."""
    counts = sorted(Counter(each.deadline_s for each in found).items())
    return ", ".join(f"{count} tests with waits of {deadline:g} s" for deadline, count in counts)
