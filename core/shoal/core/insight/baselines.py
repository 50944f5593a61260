"""How long a workflow and its tasks usually take and wait."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

RUN = ""  # the task of a baseline of the whole run
ANY = -1  # weekday or hour


class Baseline(NamedTuple):
    """Of ``n`` that succeeded in 60 days: durations, and what is late; waits before the start.

    ``weekday`` (0: Monday) and ``hour``, UTC, say of which starts; -1: any.
    """

    weekday: int
    hour: int
    n: int
    p50_s: float
    p95_s: float
    mad_s: float
    late_after_s: float
    wait_n: int = 0
    wait_p50_s: float | None = None
    wait_p95_s: float | None = None
    wait_mad_s: float | None = None


class Baselines:
    """Those of one workflow, from the rows of the newest result ``baselines``."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._found = {
            (row["task"], row["weekday"], row["hour"]): _baseline(row)
            for row in rows
            if row["n"] and row["p50_s"] is not None
        }

    def __len__(self) -> int:
        return len(self._found)

    def of(self, task: str, at: datetime) -> Baseline | None:
        """Return the baseline of what started then, the nearest one that there is."""
        return next(
            (
                found
                for weekday, hour in lookups(at)
                if (found := self._found.get((task, weekday, hour))) is not None
            ),
            None,
        )


_VALUES = itemgetter(*Baseline._fields)


def _baseline(row: Mapping[str, Any]) -> Baseline:
    found = Baseline._make(_VALUES(row))
    sum((found.n, found.p50_s, found.p95_s, found.mad_s, found.late_after_s))  # a TypeError now
    waits = (found.wait_n, found.wait_p50_s, found.wait_p95_s, found.wait_mad_s)
    sum(value for value in waits if value is not None)
    return found


def lookups(at: datetime) -> Iterator[tuple[int, int]]:
    """Yield which (weekday, hour) to look for, the best first. ``at`` is in UTC."""
    yield at.weekday(), at.hour
    yield ANY, at.hour
    yield at.weekday(), ANY
    yield ANY, ANY
