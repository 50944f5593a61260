"""Entries of the audit: who did what, from where, to what, and how it went."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from shoal.core.timing.instant import Instant


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


class EntryFilter(BaseModel):
    """Which entries to list, as the parameters of a query."""

    model_config = ConfigDict(frozen=True)

    principal: str | None = Field(default=None, max_length=201, description="Who has done it.")
    action: str | None = Field(
        default=None,
        max_length=100,
        description="An action, or all of a noun: `secret.*`.",
    )
    outcome: Outcome | None = Field(default=None, description="Whether it was refused.")
    request: str | None = Field(default=None, max_length=200, description="The id of one.")
    since: Instant | None = Field(default=None, description="At this instant or later.")
    until: Instant | None = Field(default=None, description="Before.")
