"""Failures of one cause, across workflows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import itemgetter
from typing import Any, NamedTuple

Place = tuple[str, str, str]  # project, workflow, task


class FailureDay(NamedTuple):
    """What is kept of a row of ``failures``. Times are ISO 8601."""

    fingerprint: str
    task: str
    sample: str
    count_day: int
    first_seen: str
    last_seen: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "FailureDay":
        """Return what is kept of a row. Raises TypeError if it counts nothing."""
        found = cls._make(_VALUES(row))
        return found._replace(count_day=0 + found.count_day)


_VALUES = itemgetter(*FailureDay._fields)


@dataclass(frozen=True)
class FailureGroup:
    """Attempts that failed with the same fingerprint.

    ``sample``: the error line of the newest. ``count``: in the window; ``first_seen`` looks back
    60 days before each of its days. ``where``: how many of each task, the most first.
    """

    fingerprint: str
    sample: str
    count: int
    first_seen: str
    last_seen: str
    by_day: Mapping[date, int]
    where: Sequence[tuple[Place, int]]

    @property
    def workflows(self) -> int:
        """In how many workflows they were."""
        return len({place[:2] for place, _ in self.where})


def failure_groups(
    rows: Iterable[tuple[date, tuple[str, str], FailureDay]],
) -> list[FailureGroup]:
    """Return the groups of rows by (day, (project, workflow), row), the most first."""
    groups: dict[str, list[tuple[date, Place, FailureDay]]] = {}
    for day, name, row in rows:
        groups.setdefault(row.fingerprint, []).append((day, (*name, row.task), row))
    found = [_group(fingerprint, members) for fingerprint, members in groups.items()]
    return sorted(found, key=lambda one: (-one.count, one.fingerprint))


def _group(fingerprint: str, members: Sequence[tuple[date, Place, FailureDay]]) -> FailureGroup:
    by_day: Counter[date] = Counter()
    where: Counter[Place] = Counter()
    for day, place, row in members:
        by_day[day] += row.count_day
        where[place] += row.count_day
    newest = max((row for _, _, row in members), key=lambda row: row.last_seen)
    return FailureGroup(
        fingerprint=fingerprint,
        sample=newest.sample or "",
        count=by_day.total(),
        first_seen=min(row.first_seen for _, _, row in members),
        last_seen=newest.last_seen,
        by_day=dict(sorted(by_day.items())),
        where=sorted(where.items(), key=lambda one: (-one[1], one[0])),
    )
