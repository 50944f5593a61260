"""The audit: entries, the chain of their hashes, and what was pruned."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, Row, bindparam, delete, func, insert, select, update

from shoal.core.access.audit.chain import ChainHead, link_hash
from shoal.core.access.audit.entries import AuditEntry, EntryFilter, NewEntry, Outcome
from shoal.core.errors import shortened
from shoal.core.untrusted import NotJson, encodable, read_json
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import AlreadyExists
from shoal.sql.schema.audit import audit_entry, audit_link, audit_state
from shoal.sql.schema.types import UnreadableValue

_INSERT = insert(audit_entry)
_ENCODE = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode
_E, _L = audit_entry.c, audit_link.c
_LONGEST: Mapping[str, int] = {
    "action": 100,
    "principal": 201,
    "address": 100,
    "request_id": 200,
    "project": 100,
    "object": 1000,
}
_FLOOR: BindParameter[Any] = bindparam("floor")
# Entries that no link has; PostgreSQL shows rows in the order of commits, so there may be gaps.
_UNLINKED = (
    select(audit_entry)
    .outerjoin(audit_link, _L.entry_id == _E.id)
    .where(_E.id > _FLOOR, _L.entry_id.is_(None))
    .order_by(_E.id)
)
_DELETED_TOGETHER = 500
_LONGEST_SHOWN = 1_000  # characters of a detail that cannot be read


@dataclass(frozen=True)
class AuditLink:
    """A place in the chain; ``entry`` None: the entry is no longer there."""

    position: int
    hash: str
    previous: str
    entry: AuditEntry | None


_EntryList = list[AuditEntry]
_LinkList = list[AuditLink]


class Audit:
    """The tables of the audit. Entries are added, and never changed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, entries: Sequence[NewEntry]) -> None:
        """Store entries, in the transaction of what they record."""
        await self._connection.change([(_INSERT, [_values(one) for one in entries])])

    async def list(
        self, wanted: EntryFilter, before: int | None, limit: int, project: str | None = None
    ) -> _EntryList:
        """Return entries, the newest first, those below the id ``before``."""
        query = select(audit_entry).order_by(_E.id.desc()).limit(limit)
        for column, value in (
            (_E.project, project),
            (_E.principal, wanted.principal),
            (_E.outcome, wanted.outcome),
            (_E.request_id, wanted.request),
        ):
            if value is not None:
                query = query.where(column == str(value))
        if wanted.action is not None:
            prefix = wanted.action.removesuffix("*")
            is_exact = prefix == wanted.action
            query = query.where(
                _E.action == prefix if is_exact else _E.action.startswith(prefix, autoescape=True)
            )
        if wanted.since is not None:
            query = query.where(_E.at >= wanted.since)
        if wanted.until is not None:
            query = query.where(_E.at < wanted.until)
        if before is not None:
            query = query.where(_E.id < before)
        return [_entry(row) for row in await self._connection.rows(query)]

    # -- the chain -------------------------------------------------------------------------

    async def head(self) -> ChainHead:
        """Return the last place of the chain; position 0 if it is empty."""
        query = select(audit_link).order_by(_L.position.desc()).limit(1)
        row = await self._connection.first(query)
        return await self.pruned() if row is None else ChainHead(row.position, row.hash)

    async def pruned(self) -> ChainHead:
        """Return up to where entries were removed; position 0: nowhere."""
        row = await self._connection.first(select(audit_state))
        assert row is not None, "the migration has made it"
        return ChainHead(row.pruned, row.hash)

    async def unlinked(self, before: datetime) -> int:
        """Return how many entries from before ``before`` are in no link."""
        query = (
            select(func.count())
            .select_from(audit_entry)
            .outerjoin(audit_link, _L.entry_id == _E.id)
            .where(_L.entry_id.is_(None), _E.at < before)
        )
        count: int = await self._connection.scalar(query)
        return count

    async def pending(self, floor: int, limit: int) -> _EntryList:
        """Return the first entries behind the id ``floor`` that are in no link."""
        rows = await self._connection.rows(_UNLINKED.limit(limit), {"floor": floor})
        return [_entry(row) for row in rows]

    async def link(self, entries: Sequence[AuditEntry]) -> bool:
        """Put entries at the end of the chain; False: another process has, so roll back."""
        head = await self.head()
        rows, previous = [], head.hash
        for position, entry in enumerate(entries, head.position + 1):
            previous = link_hash(previous, entry.document())
            rows.append({"position": position, "entry_id": entry.id, "hash": previous})
        try:
            inserted = await self._connection.insert_new(audit_link, ["position"], rows)
        except AlreadyExists:  # an entry has a place already
            return False
        return inserted == len(rows)

    async def links(self, after: int, limit: int) -> _LinkList:
        """Return places of the chain behind the position ``after``, in order."""
        query = (
            select(_L.position, _L.hash, audit_entry)
            .select_from(audit_link)
            .outerjoin(audit_entry, _L.entry_id == _E.id)
            .where(_L.position > after)
            .order_by(_L.position)
            .limit(limit)
        )
        rows = await self._connection.rows(query)
        if not rows:
            return []
        previous = await self._hash_before(rows[0].position)
        found = []
        for row in rows:
            entry = None if row.id is None else _entry(row)
            found.append(AuditLink(row.position, row.hash, previous, entry))
            previous = row.hash
        return found

    async def _hash_before(self, position: int) -> str:
        query = select(_L.hash).where(_L.position == position - 1)
        stored: str | None = await self._connection.scalar(query)
        return (await self.pruned()).hash if stored is None else stored

    # -- pruning ---------------------------------------------------------------------------

    async def prune(self, before: datetime, limit: int) -> tuple[ChainHead, int]:
        """Delete the first entries of the chain that are from before ``before``.

        Returns the last place that is gone and how many went; at most ``limit``, and never the last
        of the chain. The caller stores that in an entry of the same transaction.
        """
        start, head = await self.pruned(), await self.head()
        query = (
            select(_L.position, _L.hash, _L.entry_id, _E.at)
            .select_from(audit_link)
            .join(audit_entry, _L.entry_id == _E.id)
            .where(_L.position > start.position, _L.position < head.position)
            .order_by(_L.position)
            .limit(limit)
        )
        gone = []
        for row in await self._connection.rows(query):
            if isinstance(row.at, datetime) and row.at >= before:
                break
            gone.append(row)
        if not gone:
            return start, 0
        last = ChainHead(gone[-1].position, gone[-1].hash)
        await self._connection.execute(
            update(audit_state).values(pruned=last.position, hash=last.hash)
        )
        ids = [row.entry_id for row in gone]
        for some in batched(ids, _DELETED_TOGETHER):
            # In this order: the trigger that keeps entries looks at their links.
            for statement in (
                delete(audit_entry).where(_E.id.in_(some)),
                delete(audit_link).where(_L.entry_id.in_(some)),
            ):
                await self._connection.execute(statement, is_long=True)
        return last, len(gone)


def _values(entry: NewEntry) -> dict[str, Any]:
    cut = {name: getattr(entry, name)[:most] for name, most in _LONGEST.items()}
    return {
        **cut,
        "at": entry.at,
        "outcome": str(entry.outcome),
        "principal_id": entry.principal_id,
        "detail": _ENCODE(dict(entry.detail)),
    }


def _entry(row: Row[Any]) -> AuditEntry:
    """Return a stored entry; one that was tampered with is shown as far as it can be.

    ``detail["unreadable"]`` has what cannot be shown in its place.
    """
    try:
        detail = read_json(row.detail, is_strict=True)
        if not isinstance(detail, dict):
            raise NotJson("it is not an object")
    except (TypeError, ValueError):
        detail = {"unreadable": encodable(shortened(str(row.detail), _LONGEST_SHOWN))}
    shown: dict[str, Any] = {name: encodable(str(getattr(row, name))) for name in _LONGEST}
    shown |= {"at": row.at, "outcome": row.outcome, "principal_id": row.principal_id}
    if isinstance(row.at, UnreadableValue):
        shown["at"] = datetime.fromtimestamp(0).astimezone()
    if not isinstance(row.principal_id, int | None):
        shown["principal_id"] = None
    if row.outcome not in list(Outcome):
        detail = {**detail, "unreadable": f"outcome {encodable(str(row.outcome))!r}"}
        shown["outcome"] = Outcome.REFUSED
    return AuditEntry(**shown, detail=detail, id=row.id)
