"""The entry of a request in the audit: begun when the request is let in, stored with its change.

A route names its action beside its permission: ``needs(Permission.…, audit="secret.set")``. Its
handler gets a database (``shoal.database``) whose transactions are committed with the entry, so it
cannot forget it. What is stored by other means takes the record as an argument.
"""

import hashlib
import json
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BaseModel

from shoal.api.access.auditor import Auditor
from shoal.api.access.callers import Caller
from shoal.core.access.audit.entries import NewEntry, Outcome
from shoal.core.access.authorization import Thing
from shoal.core.access.principals import PrincipalKind
from shoal.sql import UnitOfWork

# Fields of bodies whose values are kept; all others are in the digest alone, for people put
# passwords where they do not belong. Of secrets, which their types mask, there is not even that.
_KEPT = frozenset(
    {"type", "name", "project", "workflow", "instance_id", "task_instance_id", "task", "tasks"}
    | {"mode", "version", "priority", "role", "what", "kind", "host", "port", "user", "database"}
    | {"shared_with", "is_admin", "disabled", "permissions", "projects", "days", "keep_tokens"}
    | {"before", "dry_run", "first", "last", "paused", "reference"}
)
_LONGEST = 500  # characters of the JSON of a value
_BREAK_GLASS_PERIOD_S = 3600.0


@dataclass
class Record:
    """What is known of a request. Handlers may add to ``detail``: no secret, nothing long."""

    auditor: Auditor
    caller: Caller
    address: str
    request_id: str
    action: str = ""
    project: str = ""
    object: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    thing: tuple[Thing, int | str] | None = None  # its project is looked up if it is not known
    is_reading: bool = False  # GET: there is no change to go with

    def about(self, action: str, values: Mapping[str, Any], in_path: Set[str]) -> None:
        """Take what the path and the body of a request say. Secrets are masked by their types."""
        self.action = action
        self.project = str(values.get("project") or "")
        for value in values.values():
            if isinstance(value, BaseModel):
                self._about_body(value)
        named = [str(value) for name, value in values.items() if name in in_path - {"project"}]
        self.object = "/".join(named) or self.object or self.project

    def _about_body(self, body: BaseModel) -> None:
        self.project = self.project or str(getattr(body, "project", None) or "")
        for name in ("name", "workflow", "instance_id", "task_instance_id"):
            if not self.object and (value := getattr(body, name, None)) is not None:
                self.object = str(value)
        given = body.model_dump(mode="json", exclude_unset=True)
        content = json.dumps(given, sort_keys=True)
        self.detail["sha256"] = hashlib.sha256(content.encode()).hexdigest()
        is_short = len(content) <= _LONGEST
        self.detail["asked"] = {
            name: given[name]
            for name in sorted(_KEPT & given.keys())
            if is_short or len(json.dumps(given[name])) <= _LONGEST
        }

    def about_one(self, action: str, thing: Thing, key: int) -> "Record":
        """Return the record of one thing among those of a request that is about many."""
        detail = dict(self.detail)
        return replace(
            self, action=action, project="", object=str(key), thing=(thing, key), detail=detail
        )

    async def __call__(self, uow: UnitOfWork) -> None:
        """Store the entry in a transaction that is about to be committed."""
        await uow.audit.add([await self.entry(uow)])

    async def entry(self, uow: UnitOfWork) -> NewEntry:
        """Return the entry; the transaction is used to look up names."""
        if not self.project and self.thing is not None:
            home = await uow.homes.of(*self.thing)
            if home is not None:
                self.project = (await uow.projects.named({home})).get(home, "")
        return self._entry(Outcome.DONE, self.detail)

    def refused(self, permission: str) -> None:
        """The guard has said no."""
        self.auditor.note(self._entry(Outcome.REFUSED, {"permission": permission}))

    def answered(self) -> None:
        """The handler has ended: what it has stored has its entry, which is linked soon."""
        if self.is_reading:
            self.note()
        else:
            self.auditor.soon()

    def note(self) -> None:
        """Take an entry of what has changed nothing, and is worth one all the same."""
        self.auditor.note(self._entry(Outcome.DONE, self.detail))

    def break_glass(self) -> None:
        """Note that the token of the data folder is in use: once an hour, for each address."""
        is_it = self.caller.principal.kind is PrincipalKind.BREAK_GLASS
        if is_it and self.auditor.is_first(self.address, _BREAK_GLASS_PERIOD_S):
            entry = NewEntry(
                at=self.auditor.clock(),
                action="break-glass.use",
                principal=self.caller.name,
                address=self.address,
            )
            self.auditor.note(entry)

    def _entry(self, outcome: Outcome, detail: Mapping[str, Any]) -> NewEntry:
        return NewEntry(
            at=self.auditor.clock(),
            action=self.action,
            outcome=outcome,
            principal_id=self.caller.principal.id,
            principal=self.caller.name,
            address=self.address,
            request_id=self.request_id,
            project=self.project,
            object=self.object,
            detail=detail,
        )


def action_of_command(kind: str) -> str:
    """Return what the audit calls a request for a type of command."""
    return f"command.{kind.lower().replace('_', '-')}"


def address_of(request: Request) -> str:
    """Return the address that a request comes from; empty: it is not known."""
    return request.client.host if request.client else ""


def record_of(request: Request) -> Record:
    """Return the record of a request; the route has made it."""
    found = request.state.record
    assert isinstance(found, Record)
    return found


async def _record(request: Request) -> Record:
    return record_of(request)


Recording = Annotated[Record, Depends(_record)]
