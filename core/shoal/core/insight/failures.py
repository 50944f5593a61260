"""Failures of one cause, across workflows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

Place = tuple[str, str, str]  # project, workflow, task


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
    rows: Iterable[tuple[date, tuple[str, str], Mapping[str, Any]]],
) -> list[FailureGroup]:
    """Return the groups of rows of ``failures``, by (day, (project, workflow), row), most first."""
    groups: dict[str, list[tuple[date, Place, Mapping[str, Any]]]] = {}
    for day, name, row in rows:
        groups.setdefault(row["fingerprint"], []).append((day, (*name, row["task"]), row))
    found = [_group(fingerprint, members) for fingerprint, members in groups.items()]
    return sorted(found, key=lambda one: (-one.count, one.fingerprint))


def _group(
    fingerprint: str, members: Sequence[tuple[date, Place, Mapping[str, Any]]]
) -> FailureGroup:
    by_day: Counter[date] = Counter()
    where: Counter[Place] = Counter()
    for day, place, row in members:
        by_day[day] += row["count_day"]
        where[place] += row["count_day"]
    newest = max((row for _, _, row in members), key=lambda row: str(row["last_seen"]))
    return FailureGroup(
        fingerprint,
        newest["sample"] or "",
        by_day.total(),
        min(str(row["first_seen"]) for _, _, row in members),
        newest["last_seen"],
        dict(sorted(by_day.items())),
        sorted(where.items(), key=lambda one: (-one[1], one[0])),
    )
