"""What can be asked about past runs, and the answers, as they go between two processes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Self


@dataclass(frozen=True)
class PageWanted:
    """A page of past runs, the newest end first.

    ``projects``: names, None: all. ``states``: empty: all. ``first``, ``last``: days of the end
    (UTC), both included. ``before``: the end in microseconds since 1970 and the id of the run
    behind which the page begins.
    """

    limit: int
    projects: Sequence[str] | None = None
    workflow: str | None = None
    states: Sequence[str] = ()
    first: date | None = None
    last: date | None = None
    before: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what ``from_json`` reads."""
        return asdict(self) | {
            "first": self.first and self.first.isoformat(),
            "last": self.last and self.last.isoformat(),
        }

    @classmethod
    def from_json(cls, sent: Mapping[str, Any]) -> Self:
        """Build it from what ``to_json`` made."""
        first, last, before = sent["first"], sent["last"], sent["before"]
        days = {"first": first and date.fromisoformat(first)}
        days["last"] = last and date.fromisoformat(last)
        return cls(**{**sent, **days, "before": before and (before[0], before[1])})


@dataclass(frozen=True)
class PastPage:
    """Rows of the history's table ``instances``; times are microseconds since 1970.

    ``before``: where the next page begins; None: there is none. A page that took too long has
    fewer rows than were asked for, although more follow.
    """

    rows: Sequence[Mapping[str, Any]]
    before: tuple[int, int] | None


@dataclass(frozen=True)
class PastInstance:
    """A past run: its row, those of its attempts in their order, and the tasks of its version.

    ``tasks`` None: the history does not have the plan. ``left_out``: so many earlier attempts are
    not told.
    """

    row: Mapping[str, Any]
    attempts: Sequence[Mapping[str, Any]]
    tasks: Sequence[Mapping[str, Any]] | None
    left_out: int = 0
