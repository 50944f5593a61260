"""Which key encrypts secrets, and what is encrypted with which: the course of a rotation.

The key that encrypts is read again in each transaction that stores a ciphertext, and held until it
is committed. So once another one is in its place, nothing comes with the former.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, Table, literal, select, update

from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import data_source, project, sealing, secret


@dataclass(frozen=True)
class SealingState:
    """``primary`` encrypts; None: the first key of the file. ``next``: is to take its place.

    ``old``: have lost it, and may still be in use. ``retired``: are not to be used again.
    """

    primary: str | None
    next: str | None
    old: tuple[str, ...]
    retired: tuple[str, ...]


@dataclass(frozen=True)
class Sealed:
    """A stored ciphertext and what it is bound to. ``is_password``: of a data source."""

    id: int
    is_password: bool
    project: str
    name: str
    ciphertext: str = field(repr=False)


_SealedList = list[Sealed]


class Sealing:
    """The ``sealing`` table, and the ciphertexts of the others."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def state(self, *, hold: str | None = None) -> SealingState:
        """Return the state. ``hold``: "share" or "change" it until the transaction ends."""
        query = select(sealing)
        if hold is not None:
            query = query.with_for_update(read=hold == "share")
        row = await self._connection.first(query)
        assert row is not None, "the migration has made it"
        return SealingState(row.primary_key, row.next_key, tuple(row.old), tuple(row.retired))

    async def holds(self, primary: str | None) -> bool:
        """Say whether this key still encrypts; if so, until the transaction has ended."""
        return (await self.state(hold="share")).primary == primary

    async def save(self, state: SealingState) -> None:
        """Store another state; it was read in this transaction with "change"."""
        await self._connection.execute(
            update(sealing).values(
                primary_key=state.primary,
                next_key=state.next,
                old=list(state.old),
                retired=list(state.retired),
            )
        )

    async def not_with(self, key: str, but: Collection[Sealed], limit: int) -> _SealedList:
        """Return some ciphertexts that were not made with a key, without those of ``but``."""
        skipped = {(one.is_password, one.id) for one in but}
        found = [one for one in await self._all() if f":{key}:" not in one.ciphertext[:30]]
        return [one for one in found if (one.is_password, one.id) not in skipped][:limit]

    async def ciphertexts(self) -> list[str]:
        """Return all ciphertexts."""
        return [one.ciphertext for one in await self._all()]

    async def replace(self, old: Sealed, ciphertext: str) -> bool:
        """Store another ciphertext of the same value; False: it was changed since it was read."""
        table, column = _place(old.is_password)
        changed = await self._connection.execute(
            update(table)
            .where(table.c.id == old.id, column == old.ciphertext)
            .values({column: ciphertext})
        )
        return changed.rowcount == 1

    async def _all(self) -> _SealedList:
        found = []
        for is_password in (False, True):
            rows: Sequence[Any] = await self._connection.rows(_query(is_password))
            found += [Sealed(*row) for row in rows]
        return found


def _place(is_password: bool) -> tuple[Table, Any]:
    if is_password:
        return data_source, data_source.c.password
    return secret, secret.c.ciphertext


def _query(is_password: bool) -> Select[Any]:
    table, column = _place(is_password)
    is_encrypted = column.is_not(None) if is_password else secret.c.reference.is_(None)
    return (
        select(table.c.id, literal(is_password), project.c.name, table.c.name, column)
        .select_from(table)
        .join(project, project.c.id == table.c.project_id)
        .where(is_encrypted)
        .order_by(table.c.id)
    )
