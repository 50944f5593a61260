"""What SQLAlchemy executes statements with: a cursor whose statements go the way of all others."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, Self

from psycopg import DataError
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import RowFactory, tuple_row
from psycopg.types.datetime import TimestamptzLoader

from shoal.sql.driver.postgresql.pipeline import PipelineStatement

Carry = Callable[[Iterable[PipelineStatement]], Awaitable[list[PGresult]]]

_WORKS = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class Carrier(Protocol):
    """A connection, as far as its cursors need it."""

    carry: Carry  # returns an answer to each statement, none of them an error
    converter: "Converter"


class _AnyTime(TimestamptzLoader):
    """Returns a time that Python cannot hold, such as ``infinity``, as its text."""

    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)
        except DataError:
            return bytes(data).decode("utf-8", "replace")


class _Lenient:
    """The context of a connection whose values may be any that the server has."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.adapters = AdaptersMap(connection.adapters)
        self.adapters.register_loader("timestamptz", _AnyTime)


class Converter:
    """Converts values for the server, and those that come from it, on one connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._transformer = Transformer(connection)

    def dumped(self, values: Sequence[Any]) -> Sequence[Buffer | None]:
        """Return values in PostgreSQL's text form."""
        return self._transformer.dump_sequence(values, [PyFormat.TEXT] * len(values))

    def typed(self, text: str, values: Sequence[Any]) -> PipelineStatement:
        """Return a statement that no module holds, with the types of its values."""
        dumped = self.dumped(values)
        return PipelineStatement(text, dumped, self._transformer.types or (), is_held=False)

    def rows(self, answer: PGresult) -> list[tuple[Any, ...]]:
        """Return the rows of an answer.

        One time that Python cannot hold must not hide the other rows: it is returned as its text,
        which the column type then marks as unreadable.
        """
        self._transformer.set_pgresult(answer)
        try:
            return self._transformer.load_rows(0, answer.ntuples, tuple)
        except DataError:
            lenient = Transformer(_Lenient(self._connection))
            lenient.set_pgresult(answer)
            return lenient.load_rows(0, answer.ntuples, tuple)


class StatementCursor:
    """Executes what SQLAlchemy has made of a statement. Has of DBAPI what SQLAlchemy uses."""

    arraysize = 1
    lastrowid = 0

    def __init__(self, connection: Carrier, *, row_factory: RowFactory[Any] = tuple_row) -> None:
        """``row_factory`` is the driver's default: rows are tuples."""
        self._connection = connection
        self.pgresult: PGresult | None = None
        self.rowcount = -1

    async def __aenter__(self) -> Self:
        return self

    async def execute(
        self, text: str, values: Sequence[Any] | None = None, *, prepare: bool | None = None
    ) -> Self:
        """Execute a statement; ``$1`` and so on stand for its values."""
        statement = self._connection.converter.typed(text, values or ())
        [self.pgresult] = await self._connection.carry([statement])
        self.rowcount = _count(self.pgresult)
        return self

    async def executemany(self, text: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement with each of the rows of values."""
        typed = self._connection.converter.typed
        answers = await self._connection.carry(typed(text, values) for values in rows)
        self.pgresult = None
        self.rowcount = sum(map(_count, answers))

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name and type of each column; None: the statement returns no rows."""
        answer = self.pgresult
        if answer is None or answer.status != ExecStatus.TUPLES_OK:
            return None
        names = [answer.fname(n) or b"" for n in range(answer.nfields)]
        types = [answer.ftype(n) for n in range(answer.nfields)]
        return [(n.decode(), of, *[None] * 5) for n, of in zip(names, types, strict=True)]

    async def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        assert self.pgresult is not None
        return self._connection.converter.rows(self.pgresult)

    async def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row."""
        return next(iter(await self.fetchall()), None)

    def _close(self) -> None:
        self.pgresult = None


def checked(answer: PGresult, encoding: str) -> PGresult:
    """Return an answer that is not an error. Raises psycopg.Error for one that is."""
    if answer.status in _WORKS:
        return answer
    raise error_from_result(answer, encoding=encoding)


def _count(answer: PGresult) -> int:
    return -1 if answer.command_tuples is None else answer.command_tuples
