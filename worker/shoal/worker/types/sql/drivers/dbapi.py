"""A session over a driver that follows Python's database API (PEP 249)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from shoal.worker.types.sql.drivers.failures import (
    SqlFailed,
    StatementCancelled,
    StatementTimedOut,
    require_reading,
)
from shoal.worker.types.sql.drivers.rows import NoRows, RowStream
from shoal.worker.types.sql.drivers.running_statement import RunningStatement
from shoal.worker.types.sql.drivers.syntax import quoted, reads
from shoal.worker.types.sql.session import Column, Result


class DbApiBackend(Protocol):
    """What one kind of database does in its own way."""

    #: What the driver raises.
    errors: tuple[type[Exception], ...]
    #: Whether several statements can be one transaction.
    has_transactions: bool
    #: Whether the database itself refuses changes of a session that ``read_only`` is asked of.
    refuses_changes: bool
    #: First words, in capitals, of statements that only read in this database, besides those that
    #: only read in every database. Such as WITH, if no INSERT can follow it.
    reading: tuple[str, ...]
    #: What stands around names.
    quote_mark: str

    def placeholder(self, number: int, type_name: str) -> str:
        """Return what stands for a value; see ``Session.placeholder``."""
        ...

    def cursor(self) -> Any:
        """Return a new cursor."""
        ...

    def begin(self) -> None:
        """Begin a transaction."""
        ...

    def commit(self) -> None:
        """Commit it."""
        ...

    def rollback(self) -> None:
        """Roll it back."""
        ...

    def type_name(self, type_code: Any) -> str:
        """Return what the database calls the type of a column."""
        ...

    def commits(self, statement: str) -> bool:
        """Return whether the database commits by itself around a statement."""
        ...

    def failed(self, error: Exception, *, in_commit: bool) -> SqlFailed:
        """Return the error for people and for ``classify``."""
        ...

    def interrupt(self) -> None:
        """Cancel what runs. For other threads."""
        ...

    def end(self) -> None:
        """End the connection at the server. For other threads."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class DbApiSession:
    """See ``session.Session``."""

    def __init__(
        self, backend: DbApiBackend, statement_timeout_s: float | None, *, read_only: bool
    ) -> None:
        self._backend, self._read_only = backend, read_only
        self._statement_timeout_s = statement_timeout_s
        self._running = RunningStatement(backend.interrupt, statement_timeout_s)
        self._in_transaction = False
        self._last: RowStream | None = None

    def placeholder(self, number: int, type_name: str) -> str:
        """See Session."""
        return self._backend.placeholder(number, type_name)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        """See Session."""
        if self._last is not None:
            self._last.close()
        if self._read_only and not self._backend.refuses_changes:
            require_reading(statement, self._backend.reading)
        is_alone = not self._in_transaction or self._backend.commits(statement)
        only_reads = self._read_only or reads(statement, also=self._backend.reading)
        changes = is_alone and not only_reads
        self._running.begin()
        try:
            with self._translated(in_commit=changes):
                cursor = self._backend.cursor()
                cursor.execute(statement, *([list(values)] if values else []))
                if cursor.description is None:
                    count = cursor.rowcount
                    cursor.close()
        except BaseException:
            self._running.end()
            raise
        if cursor.description is None:
            self._running.end()
            return NoRows(count if count is not None and count >= 0 else None)
        columns = [
            Column(name, self._backend.type_name(code)) for name, code, *_ in cursor.description
        ]
        self._last = RowStream(
            columns,
            lambda size: self._fetch(cursor, size, changes),
            lambda: self._finish(cursor),
        )
        return self._last

    def begin(self) -> None:
        """See Session."""
        if self._backend.has_transactions:
            with self._translated(in_commit=False):
                self._backend.begin()
            self._in_transaction = True

    def commit(self) -> None:
        """See Session."""
        if self._last is not None:
            self._last.close()
        with self._running.statement(), self._translated(in_commit=True):
            self._backend.commit()
        self._in_transaction = False

    def rollback(self) -> None:
        """See Session. Possible after a cancellation too."""
        self._running.end()
        self._last = None
        if self._in_transaction:
            self._in_transaction = False
            with self._translated(in_commit=False):
                self._backend.rollback()

    def quote(self, identifier: str) -> str:
        """See Session."""
        return quoted(identifier, self._backend.quote_mark)

    def implicit_commit(self, statement: str) -> bool:
        """See Session."""
        return self._backend.commits(statement)

    def cancel(self) -> None:
        """See Session."""
        self._running.cancel()

    def terminate(self) -> None:
        """See Session."""
        self._running.is_cancelled = True
        self._backend.end()

    def close(self) -> None:
        """See Session."""
        self._running.end()
        with suppress(*self._backend.errors):
            self._backend.close()

    def _fetch(self, cursor: Any, size: int, changes: bool) -> Sequence[Any]:
        try:
            with self._translated(in_commit=changes):
                rows: Sequence[Any] = cursor.fetchmany(size)
                return rows
        except BaseException:
            self._running.end()
            raise

    def _finish(self, cursor: Any) -> int | None:
        self._running.end()
        with suppress(*self._backend.errors):
            cursor.close()
        return None

    @contextmanager
    def _translated(self, *, in_commit: bool) -> Iterator[None]:
        try:
            yield
        except self._backend.errors as error:
            if self._running.has_timed_out:
                raise StatementTimedOut(self._statement_timeout_s) from error
            if self._running.is_cancelled:
                raise StatementCancelled from error
            raise self._backend.failed(error, in_commit=in_commit) from error
