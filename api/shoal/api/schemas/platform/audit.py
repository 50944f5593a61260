"""Entries of the audit and its chain."""

from typing import Any

from pydantic import BaseModel, Field

from shoal.api.schemas.common import TIME, Instant, Strict, body_example, example
from shoal.core.access.audit.entries import Outcome

_ENTRY = {
    "id": 12,
    "at": "2026-03-01T06:30:00.000000+00:00",
    "action": "secret.set",
    "outcome": "done",
    "principal_id": 3,
    "principal": "ada",
    "address": "10.0.0.7",
    "request_id": "",
    "project": "flights",
    "object": "db_password",
    "detail": {},
}


class AuditEntryOut(BaseModel):
    """Who did what. What is hashed is this very object."""

    model_config = example(_ENTRY)

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


class AuditHeadOut(BaseModel):
    """The end of the chain. Who notes it finds later if anything before it was changed."""

    model_config = example({"position": 12, "hash": "0" * 64, "pruned": 0, "unlinked": 0})

    position: int
    hash: str
    pruned: int = Field(description="Entries up to this position were removed.")
    unlinked: int = Field(description="Entries older than a minute that no process has linked.")


class AuditLinkOut(BaseModel):
    """A place in the chain: the hash of its entry's JSON behind the hash before it."""

    model_config = example(
        {"position": 12, "hash": "0" * 64, "previous": "0" * 64, "entry": _ENTRY}
    )

    position: int
    hash: str = Field(description="SHA-256, hex, of the hash before, a newline, sorted JSON.")
    previous: str
    entry: AuditEntryOut | None = Field(description="null: it is missing, which must not be.")


class AuditPruneIn(Strict):
    """Up to when entries are removed."""

    model_config = body_example({"before": TIME})

    before: Instant = Field(description="Entries from before it go.")


class AuditPrunedOut(BaseModel):
    """What was removed."""

    model_config = example({"removed": 500, "position": 500, "hash": "0" * 64})

    removed: int
    position: int
    hash: str
