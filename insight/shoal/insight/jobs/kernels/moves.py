"""Which schedules to move by some minutes, so that fewer of them fire in the same minute."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shoal.insight.jobs.kernels.statistics import Numbers

MINUTES = 1440  # of a day
MOST_MOVES = 50
_FURTHEST = 15  # minutes
_MOST_FIRES = 48  # a day: who fires more often cannot evade a minute
_LEAST_GAIN = 1e-9


@dataclass(frozen=True)
class Move:
    """Let a schedule fire ``minutes`` later (earlier if negative).

    ``minute``: of the day, the one that is relieved. ``before``, ``after``: the highest expected
    number of starts in one minute, before and after this move and all before it.
    """

    schedule: int
    minute: int
    minutes: int
    before: float
    after: float


def moves(fires: Mapping[int, Mapping[int, float]]) -> list[Move]:
    """Return the moves that relieve the fullest minutes, the most useful first.

    ``fires``: for each schedule its expected starts by minute of the day. Each move takes one from
    the fullest minute that can be relieved, to where the fullest of the minutes it fires in is
    least full; of equals the nearest minute, then the later one. Each schedule moves once.
    """
    load = np.zeros(MINUTES)
    vectors = {
        schedule: (np.array(sorted(of)), np.array([of[minute] for minute in sorted(of)]))
        for schedule, of in fires.items()
    }
    for minutes, starts in vectors.values():
        np.add.at(load, minutes, starts)
    movable = {
        schedule: vector for schedule, vector in vectors.items() if len(vector[0]) <= _MOST_FIRES
    }
    found: list[Move] = []
    stuck = np.zeros(MINUTES, dtype=bool)
    while len(found) < MOST_MOVES and not stuck.all():
        before = float(load.max())
        fullest = int(np.where(stuck, -1.0, load).argmax())
        if load[fullest] < before / 2:
            break  # what is left matters little beside the fullest
        best = _best(load, fullest, movable)
        if best is None:
            stuck[fullest] = True
            continue
        schedule, shift = best
        minutes, starts = movable.pop(schedule)
        np.subtract.at(load, minutes, starts)
        np.add.at(load, (minutes + shift) % MINUTES, starts)
        found.append(Move(schedule, fullest, shift, before, float(load.max())))
    return found


def _best(
    load: Numbers, fullest: int, movable: Mapping[int, tuple[np.ndarray, Numbers]]
) -> tuple[int, int] | None:
    """Return which schedule to move out of a minute, and by how much; None: none gains by it."""
    choices = []
    for schedule, (minutes, starts) in movable.items():
        if fullest not in minutes:
            continue
        without = load.copy()
        np.subtract.at(without, minutes, starts)
        for shift in sorted(range(-_FURTHEST, _FURTHEST + 1), key=lambda one: (abs(one), -one)):
            to = (minutes + shift) % MINUTES
            full = float((without[to] + starts).max())
            if shift and full < load[fullest] - _LEAST_GAIN:
                choices.append((full, abs(shift), -shift, schedule))
    if not choices:
        return None
    _, _, negative, schedule = min(choices)
    return schedule, -negative
