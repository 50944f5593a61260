"""How far the database has come, and how to continue after it has lost commits.

A failover to a replica that was behind, or an older copy in the database's place, has lost commits
that masters, workers and storages know of. The protocol is that of
``master/membership/lost_commits.py``; these are its two transactions.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    CursorResult,
    String,
    Table,
    cast,
    column,
    func,
    literal,
    select,
    table,
    text,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import REGCLASS

from shoal.core.runs.records import DatabaseProgress, Watermark
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import (
    backfill,
    cluster,
    command,
    event,
    partition,
    resource,
    task_instance,
    workflow,
    workflow_instance,
)

# Their ids are known outside: in claims, logs, objects, tags, exports and the answers of the API.
KNOWN_OUTSIDE = (
    backfill,
    command,
    event,
    resource,
    task_instance,
    workflow,
    workflow_instance,
)
# More ids than a cluster gives out between the last watermark and the loss.
MARGIN = 1_000_000


_SEQUENCES = table("sqlite_sequence", column("name", String), column("seq", BigInteger))


def _ids(given: Callable[[str], ColumnElement[Any]]) -> CompoundSelect[Any]:
    """Return the query for the highest id of each table and the last one that it gave out."""
    return union_all(
        *(
            select(
                literal(one.name).label("name"),
                select(func.max(one.c.id)).scalar_subquery().label("highest"),
                given(one.name).label("given"),
            )
            for one in KNOWN_OUTSIDE
        )
    )


def _given_sqlite(name: str) -> ColumnElement[Any]:
    return select(_SEQUENCES.c.seq).where(_SEQUENCES.c.name == name).scalar_subquery()


def _given_postgresql(name: str) -> ColumnElement[Any]:
    sequence = cast(func.pg_get_serial_sequence(name, "id"), REGCLASS)
    return func.pg_sequence_last_value(sequence)


_IDS = {"sqlite": _ids(_given_sqlite), "postgresql": _ids(_given_postgresql)}
_SET_POSTGRESQL = text(
    "SELECT setval(CAST(pg_get_serial_sequence(:name, 'id') AS regclass), :id) AS id"
).columns(column("id"))
_SET_SQLITE = text("UPDATE sqlite_sequence SET seq = :id WHERE name = :name")
_NEW_SQLITE = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :id)")


class Watermarks:
    """Reads the watermark of the database, and moves its ids beyond an earlier one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self) -> DatabaseProgress | None:
        """Return how far the database has come; None if the row of the cluster says nothing."""
        row = await self._connection.first(select(cluster))
        if row is None or not isinstance(row.tree_beats, int) or not isinstance(row.uid, str):
            return None  # lost, or what SQLite lets others write there
        rows = await self._connection.rows(_IDS[self._connection.dialect])
        highest = {row.name: int(row.highest or 0) for row in rows}
        # SQLite's sequences know no rows of before the first id that was given out.
        given = {row.name: max(int(row.given or 0), highest[row.name]) for row in rows}
        return DatabaseProgress(row.uid, Watermark(row.tree_beats, highest), given)

    async def move_beyond(self, mark: Watermark) -> bool:
        """Give no id up to ``mark`` any longer, and fence all owners; the caller commits.

        Returns False, and changes nothing, if the database is no longer behind: another master was
        quicker. The fence has each owner read its runs anew, since what it knows is ahead of the
        database.
        """
        await self._connection.first(select(cluster).with_for_update())
        progress = await self.read()
        if progress is None or not progress.missing(mark):
            return False
        for one in KNOWN_OUTSIDE:
            known = max(mark.ids.get(one.name, 0), progress.given[one.name])
            if known:
                await self._set_last_id(one, known + MARGIN)
        beats = max(mark.beats, progress.committed.beats) + 1
        await self._connection.execute(update(cluster).values(tree_beats=beats))
        # In order of their number, as everywhere: no deadlocks.
        await self._connection.rows(
            select(partition.c.number).order_by(partition.c.number).with_for_update()
        )
        await self._connection.execute(update(partition).values(epoch=partition.c.epoch + 1))
        return True

    async def _set_last_id(self, one: Table, last: int) -> None:
        values = {"name": one.name, "id": last}
        if self._connection.dialect == "postgresql":
            await self._connection.fetch(_SET_POSTGRESQL, values)
            return
        result: CursorResult[Any] = await self._connection.execute(_SET_SQLITE, values)
        if not result.rowcount:
            await self._connection.execute(_NEW_SQLITE, values)
