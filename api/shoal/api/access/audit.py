"""The audit: the entry of each request, and the process's part in storing and linking entries.

``Record`` is the entry of one request: begun when the request is let in, stored with its change. A
route names its action beside its permission: ``needs(Permission.…, audit="secret.set")``. The guard
gives the route's handler a store whose transactions are committed with the entry, so a handler
cannot forget it. Other objects that store something take the record as an argument.

``Auditor`` links stored entries to a chain, and stores entries that belong to no change, such as
refusals: they are throttled, so a flood of them is counted and not stored one by one.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

import structlog
from fastapi import Depends, Request
from pydantic import BaseModel

from shoal.api.access.callers import Caller
from shoal.core.access.audit.entries import NewEntry, Outcome
from shoal.core.access.audit.throttle import Throttle
from shoal.core.access.authorization import Thing
from shoal.core.access.principals import PrincipalKind
from shoal.core.errors import ShoalError
from shoal.sql import Database, UnitOfWork

log = structlog.get_logger()

_LINKED_TOGETHER = 500  # entries
# A transaction that commits after so many later entries were linked is found at the next start.
_LOOKED_BACK = 10_000
_MOST_SEEN = 1_000  # addresses


class Auditor:
    """One per API process; an async context manager, one event loop."""

    GATHER_S: ClassVar[float] = 0.5  # entries of this time are linked together
    IDLE_S: ClassVar[float] = 10.0  # then look for what others have left behind
    HEAD_LOGGED_S: ClassVar[float] = 3600.0

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self.clock = database, clock
        self._throttle = Throttle()
        self._soon = asyncio.Event()
        self._seen_until_s: dict[str, float] = {}
        self._floor = 0
        self._head_logged_s = -self.HEAD_LOGGED_S
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="auditor")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Store what is counted and link what there is, if the database lets us."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        with suppress(ShoalError):
            await self.settle(everything=True)

    def note(self, entry: NewEntry) -> None:
        """Take an entry that belongs to no change; see ``Throttle``."""
        self._throttle.add(entry, time.monotonic())
        self._soon.set()

    def is_first(self, address: str, period_s: float) -> bool:
        """Say whether an address was not asked about for so long."""
        now_s = time.monotonic()
        if now_s < self._seen_until_s.get(address, 0.0):
            return False
        if len(self._seen_until_s) >= _MOST_SEEN:
            self._seen_until_s.clear()
        self._seen_until_s[address] = now_s + period_s
        return True

    def soon(self) -> None:
        """A change was stored with its entry."""
        self._soon.set()

    async def settle(self, *, everything: bool = False) -> None:
        """Store what is due and link all entries that are not linked. Raises SqlError."""
        due = self._throttle.take(time.monotonic(), everything=everything)
        if due:
            try:
                async with self._database.unit_of_work() as uow:
                    await uow.audit.add(due)
                    await uow.commit()
            except ShoalError:
                log.warning("entries of the audit are lost", count=len(due))
                raise
        while await self._link():
            pass

    async def _link(self) -> bool:
        """Link some entries; say whether there may be more."""
        async with self._database.unit_of_work(read_only=True) as uow:
            if not await uow.audit.pending(self._floor, 1):
                return False
        async with self._database.unit_of_work() as uow:
            pending = await uow.audit.pending(self._floor, _LINKED_TOGETHER)
            if not pending or not await uow.audit.link(pending):
                return False  # another process was faster
            await uow.commit()
        self._floor = max(self._floor, pending[0].id - _LOOKED_BACK)
        return len(pending) == _LINKED_TOGETHER

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.IDLE_S):
                    await self._soon.wait()
            if self._soon.is_set():
                await asyncio.sleep(self.GATHER_S)
            self._soon.clear()
            try:
                await self.settle()
                await self._log_head()
            except ShoalError as error:
                log.warning("audit not linked; it is tried again", error=str(error))

    async def _log_head(self) -> None:
        """Let the head stand in the log, too: what changes the database leaves that as it is."""
        now_s = time.monotonic()
        if now_s - self._head_logged_s < self.HEAD_LOGGED_S:
            return
        async with self._database.unit_of_work(read_only=True) as uow:
            head = await uow.audit.head()
        if head.position:
            log.info("head of the audit", head=str(head))
            self._head_logged_s = now_s


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
    has_large_body: bool = False  # work on it is done beside the event loop

    async def about(self, action: str, values: Mapping[str, Any], in_path: Set[str]) -> None:
        """Take what the path and the body of a request say. Secrets are masked by their types."""
        self.action = action
        self.project = str(values.get("project") or "")
        for value in values.values():
            if isinstance(value, BaseModel):
                await self._about_body(value)
        named = [str(value) for name, value in values.items() if name in in_path - {"project"}]
        self.object = "/".join(named) or self.object or self.project

    async def _about_body(self, body: BaseModel) -> None:
        self.project = self.project or str(getattr(body, "project", None) or "")
        for name in ("name", "workflow", "instance_id", "task_instance_id"):
            if not self.object and (value := getattr(body, name, None)) is not None:
                self.object = str(value)
        if self.has_large_body:
            self.detail |= await asyncio.to_thread(_detail_of, body)
        else:
            self.detail |= _detail_of(body)

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


def _detail_of(body: BaseModel) -> dict[str, Any]:
    """Return what an entry keeps of a body. On any thread."""
    given = body.model_dump(mode="json", exclude_unset=True)
    content = json.dumps(given, sort_keys=True)
    is_short = len(content) <= _LONGEST
    asked = {
        name: given[name]
        for name in sorted(_KEPT & given.keys())
        if is_short or len(json.dumps(given[name])) <= _LONGEST
    }
    return {"sha256": hashlib.sha256(content.encode()).hexdigest(), "asked": asked}


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
