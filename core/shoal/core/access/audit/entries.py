"""Entries of the audit: who did what, from where, to what, and how it went."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How it went."""

    DONE = "done"  # stored in the transaction of the change itself
    REFUSED = "refused"  # no right, wrong password: nothing was changed


@dataclass(frozen=True)
class NewEntry:
    """An entry about to be stored.

    ``principal_id`` is None for who has no account. ``project`` and ``object`` are names; empty:
    none. ``detail`` holds JSON of texts, whole numbers, booleans, lists and objects: no secret.
    """

    at: datetime
    action: str  # noun.verb
    outcome: Outcome = Outcome.DONE
    principal_id: int | None = None
    principal: str = ""
    address: str = ""
    request_id: str = ""
    project: str = ""
    object: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditEntry(NewEntry):
    """A stored entry."""

    id: int = 0

    def document(self) -> dict[str, Any]:
        """Return the entry as JSON: what is hashed, shown and exported."""
        at = self.at.astimezone(UTC).isoformat(timespec="microseconds")
        return {**vars(self), "at": at, "outcome": str(self.outcome)}


@dataclass(frozen=True)
class EntryFilter:
    """Which entries to list; None: all. ``action`` may end with ``.*``."""

    project: str | None = None
    principal: str | None = None
    action: str | None = None
    outcome: Outcome | None = None
    request_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
