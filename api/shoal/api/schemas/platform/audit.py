"""Entries of the audit and its chain."""

from typing import Any

from pydantic import Field

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.access.audit.entries import Outcome
from shoal.core.timing.instant import Instant


class AuditEntryOut(Answer):
    """Who did what. What is hashed is this very object."""

    id: int
    at: str = Field(description="In UTC, with microseconds.")
    action: str = Field(description="noun.verb: `x-audit` of the routes.")
    outcome: Outcome
    principal_id: int | None = Field(description="null: who has no account.")
    principal: str
    address: str
    request_id: str
    project: str = Field(description="Empty: of none.")
    object: str
    detail: dict[str, Any] = Field(
        description="`count`: so many more like it; `sha256`: of what was asked, without secrets."
    )


class AuditHeadOut(Answer):
    """The end of the chain. Who notes it finds later if anything before it was changed."""

    position: int
    hash: str
    pruned: int = Field(description="Entries up to this position were removed.")
    unlinked: int = Field(description="Entries older than a minute that no process has linked.")


class AuditLinkOut(Answer):
    """A place in the chain: the hash of its entry's JSON behind the hash before it."""

    position: int
    hash: str = Field(description="SHA-256, hex, of the hash before, a newline, sorted JSON.")
    previous: str
    entry: AuditEntryOut | None = Field(description="null: it is missing, which must not be.")


class AuditPruneIn(RequestBody):
    """Up to when entries are removed."""

    before: Instant = Field(description="Entries from before it go.")


class AuditPrunedOut(Answer):
    """What was removed."""

    removed: int
    position: int
    hash: str
