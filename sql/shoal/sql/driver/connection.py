"""One connection in a transaction: what the repositories work with, on every database."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cache
from itertools import islice
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection as SyncConnection
from sqlalchemy import (
    CursorResult,
    Executable,
    Insert,
    Row,
    Table,
    UpdateBase,
    column,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from shoal.sql.driver.prepared import Change, Values
from shoal.sql.driver.queries import Query
from shoal.sql.driver.translation import FOREIGN, translate

T = TypeVar("T")
Changes = Sequence[tuple[Change, Sequence[Values]]]
Judge = Callable[[list[Any]], None]  # raises if rows are not as they have to be

# More rows of values than this in one statement are long work: some 20 µs each.
MOST_SHORT_ROWS = 100


class Length(Enum):
    """What is known of how long work with the database takes."""

    SHORT = auto()  # a millisecond or two
    LONG = auto()
    UNKNOWN = auto()  # a query: it may be stopped and done again


class DriverLink(Protocol):
    """A driver's connection in a transaction."""

    dialect: str  # sqlite or postgresql

    async def run(self, work: Callable[[SyncConnection], T], length: Length) -> T:
        """Return what ``work`` makes of SQLAlchemy's connection, which executes on this one."""

    async def change(self, changes: Changes) -> list[int]:
        """Make changes one after the other; return how many rows each has changed."""

    async def fetch(self, query: Query, values: Values) -> list[Any]:
        """Return the rows of a query as named tuples."""

    async def demand(self, query: Query, values: Values, judge: Judge) -> None:
        """Have the rows of a query judged, now or together with what comes next."""

    async def commit(self) -> None:
        """End the transaction; its changes are durable when this returns."""

    async def close(self) -> None:
        """Roll back what was not committed and give the connection up, cancelled or not."""


class ConnectionSource(Protocol):
    """Where connections come from."""

    async def open(self) -> "Connection":
        """Return a connection whose transaction has begun; to be closed. Raises SqlError."""

    async def dispose(self) -> None:
        """Close the free connections."""


class Connection:
    """A connection in a transaction. Used by one task at a time.

    ``fetch``, ``change`` and ``demand`` are for statements that modules hold: these are translated
    once. All others take any statement. What is executed goes one way, through the link.
    """

    def __init__(self, link: DriverLink) -> None:
        self._link = link
        self._over = False
        self.dialect = link.dialect
        # (workflow id, version) published in this very transaction: not to be cached before the
        # commit, for after a rollback another definition may get the number.
        self.unsettled_versions: set[tuple[int, int]] = set()

    async def execute(
        self,
        statement: Executable,
        values: Values | Sequence[Values] | None = None,
        *,
        is_long: bool = False,
    ) -> CursorResult[Any]:
        """Run one statement, or one statement with many rows of values. Raises SqlError.

        ``is_long``: it changes many rows, although it comes with few values.
        """
        many = values is not None and not isinstance(values, Mapping)
        is_long = is_long or (many and len(values or ()) > MOST_SHORT_ROWS)
        return await self._run(
            lambda connection: connection.execute(statement, values),
            Length.LONG if is_long else Length.SHORT,
        )

    async def change(self, changes: Changes) -> list[int]:
        """Run statements that a module holds, each with its rows of values, one after the other.

        The rows of a statement have the same names. Returns how many rows each has changed; one
        without values is left out, and has changed none. Raises SqlError.
        """
        self._check_open()
        made = [(statement, rows) for statement, rows in changes if rows]
        try:
            counts = iter(await self._link.change(made))
        except FOREIGN as error:
            raise translate(error) from error
        return [next(counts) if rows else 0 for _, rows in changes]

    async def fetch(self, query: Query, values: Values | None = None) -> list[Any]:
        """Return all rows of a query that a module holds, as named tuples. Raises SqlError.

        Its translation costs a fraction of that by ``rows``, ``first`` and ``scalar``.
        """
        self._check_open()
        try:
            return await self._link.fetch(query, values or {})
        except FOREIGN as error:
            raise translate(error) from error

    async def demand(self, query: Query, values: Values, judge: Judge) -> None:
        """Have the rows of a query that a module holds judged; for what costs no answer of its own.

        What ``judge`` raises comes from here, or from whatever the transaction does next: before
        anything is returned from that, and before anything is committed. Raises SqlError.
        """
        self._check_open()
        try:
            await self._link.demand(query, values, judge)
        except FOREIGN as error:
            raise translate(error) from error

    async def rows(self, query: Executable, values: Values | None = None) -> Sequence[Row[Any]]:
        """Return all rows of a query."""
        return await self._run(lambda c: c.execute(query, values).all(), Length.UNKNOWN)

    async def changed(self, statement: UpdateBase) -> Sequence[Row[Any]]:
        """Make a change of a few rows and return what it returns of them.

        Unlike a query it must not be stopped and done again: that would undo the transaction.
        """
        return await self._run(lambda c: c.execute(statement).all(), Length.SHORT)

    async def first(self, query: Executable, values: Values | None = None) -> Row[Any] | None:
        """Return the first row of a query."""
        return await self._run(lambda c: c.execute(query, values).first(), Length.UNKNOWN)

    async def scalar(self, query: Executable, values: Values | None = None) -> Any:
        """Return the first column of the first row; None if there is none."""
        return await self._run(lambda c: c.execute(query, values).scalar(), Length.UNKNOWN)

    async def run_sync(self, function: Callable[[SyncConnection], T]) -> T:
        """Run a function that wants SQLAlchemy's synchronous connection."""
        return await self._run(function, Length.SHORT)

    async def check(self) -> None:
        """Ask the database for an answer."""
        await self.scalar(select(1))

    async def commit(self) -> None:
        """End the transaction; its changes are durable when this returns."""
        self._over = True
        try:
            await self._link.commit()
        except FOREIGN as error:
            raise translate(error) from error

    async def close(self) -> None:
        """Roll back what was not committed; the connection is no longer to be used."""
        self._over = True
        try:
            await self._link.close()
        except FOREIGN as error:
            raise translate(error) from error

    async def insert_new(
        self, table: Table, key: Sequence[str], values: Values | Sequence[Values]
    ) -> int:
        """Insert rows but those whose unique ``key`` columns exist already; return how many."""
        rows = [values] if isinstance(values, Mapping) else values
        [inserted] = await self.change([(_insert_new(self.dialect, table, tuple(key)), rows)])
        return inserted

    async def reserve_ids(self, counts: Mapping[Table, int]) -> list[list[int]]:
        """Return ascending row ids of our own, as many as named for each table, in order.

        So rows can refer to each other, and go out in bulk, before they are inserted.
        """
        if self.dialect == "sqlite":  # no other connection can write before we commit
            last: dict[str, int] = {row.name: row.seq for row in await self.fetch(_LAST_IDS)}
            firsts = [(last.get(table.name, 0) + 1, count) for table, count in counts.items()]
            return [list(range(first, first + count)) for first, count in firsts]
        values = {"names": [table.name for table in counts], "counts": list(counts.values())}
        rows = await self.fetch(_NEXT_IDS, values)
        return [sorted(row.id for row in rows if row.name == table.name) for table in counts]

    async def last_id(self, table: Table) -> int:
        """Return the highest row id that a table has ever given out, also of rows that have gone.

        On SQLite tables without AUTOINCREMENT know no more than their rows. 0: none.
        """
        row = await self.first(select(func.max(table.c.id).label("id")))
        highest = 0 if row is None or row.id is None else int(row.id)
        query = _LAST_ID_SQLITE if self.dialect == "sqlite" else _LAST_ID_POSTGRESQL
        rows = await self.fetch(query, {"name": table.name})
        return max([highest, *(int(row.seq) for row in rows if row.seq is not None)])

    async def _run(self, work: Callable[[SyncConnection], T], length: Length) -> T:
        self._check_open()
        try:
            return await self._link.run(work, length)
        except FOREIGN as error:
            raise translate(error) from error

    def _check_open(self) -> None:
        if self._over:
            raise RuntimeError("this transaction is committed; open a new unit of work")


_LAST_IDS = text("SELECT name, seq FROM sqlite_sequence").columns(column("name"), column("seq"))
_LAST_ID_SQLITE = text("SELECT seq FROM sqlite_sequence WHERE name = :name").columns(column("seq"))
_LAST_ID_POSTGRESQL = text(
    "SELECT pg_sequence_last_value(CAST(pg_get_serial_sequence(:name, 'id') AS regclass)) AS seq"
).columns(column("seq"))
_NEXT_IDS = text(
    "SELECT wanted.name, nextval(pg_get_serial_sequence(wanted.name, 'id')) AS id"
    " FROM unnest(CAST(:names AS text[]), CAST(:counts AS int[])) AS wanted (name, count),"
    " generate_series(1, wanted.count)"
).columns(column("name"), column("id"))


@cache
def _insert_new(dialect: str, table: Table, key: tuple[str, ...]) -> Insert:
    make = sqlite_insert if dialect == "sqlite" else postgresql_insert
    return make(table).on_conflict_do_nothing(index_elements=key)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut ``items`` into lists of at most ``size``: databases bound the values of a statement."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
