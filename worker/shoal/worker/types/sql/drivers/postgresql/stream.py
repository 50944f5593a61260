"""What a statement returns, as it comes from the server.

The driver's cursors either keep a whole result in memory, or declare a cursor at the server, which
then runs a query only as far as it is read; a query may call functions that change something, so
its end must be reached. Here the rows come in chunks as the server sends them, and what no reader
wants is thrown away unread.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import psycopg
from psycopg import capabilities, generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from shoal.worker.types.sql.drivers.failures import SqlFailed
from shoal.worker.types.sql.drivers.postgresql.connector import Connection
from shoal.worker.types.sql.drivers.rows import BLOCK, Row
from shoal.worker.types.sql.session import Column, ErrorVerdict

_ROWS = {ExecStatus.SINGLE_TUPLE, ExecStatus.TUPLES_CHUNK}
_LAST = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY}
_COPIES = {ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH}
_CHANGING = (b"INSERT", b"UPDATE", b"DELETE", b"MERGE", b"COPY")
_NUMERIC = 1700  # the number of this type, whose columns have digits
_OWN_TYPES = """
SELECT t.oid, t.oid::regtype::text FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype IN ('b', 'e', 'r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""


class TypeNames:
    """What the types of columns are called: PostgreSQL's own, and those of the database."""

    def __init__(self, connection: Connection) -> None:
        self._types = connection.adapters.types
        self._own: dict[int, str] = dict(connection.execute(_OWN_TYPES).fetchall())

    def of(self, oid: int, modifier: int) -> str:
        """Return the name of a type, such as ``integer``, ``numeric(10,2)``, ``text[]``."""
        info = self._types.get(oid)
        if info is None:
            return self._own.get(oid, f"type {oid}")
        if oid == _NUMERIC and modifier >= 4:
            return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0x7FF})"
        return info.regtype + ("[]" if oid == info.array_oid else "")


class Stream:
    """The result of one statement. ``translated`` is around all that the server answers;
    ``ended`` is called when it has answered everything.
    """

    def __init__(
        self,
        connection: Connection,
        type_names: TypeNames,
        translated: Callable[[], AbstractContextManager[None]],
        ended: Callable[[], None],
    ) -> None:
        self.columns: Sequence[Column] = ()
        self.row_count: int | None = None
        self.status = ""  # what the server calls what it has done, such as "INSERT 0 1"
        self._connection, self._type_names = connection, type_names
        self._translated, self._ended = translated, ended
        self._transformer = Transformer(connection)
        self._first: PGresult | None = None
        self._is_over = False

    def start(self, statement: str, values: Sequence[Any]) -> None:
        """Send the statement and wait for the first answer."""
        with self._answering():
            self._send(statement, values)
            result = self._next()
            if result is not None and result.nfields:
                self.columns = [
                    Column(
                        (result.fname(index) or b"").decode(),
                        self._type_names.of(result.ftype(index), result.fmod(index)),
                    )
                    for index in range(result.nfields)
                ]
            self._first = result

    def __iter__(self) -> Iterator[Row]:
        """See Result."""
        result, self._first = self._first, None
        while result is not None:
            with self._answering():
                rows = self._loaded(result)
            yield from rows
            if self._is_over:  # closed by the reader
                return
            with self._answering():
                result = self._next()

    def next_set(self) -> bool:
        """See Result."""
        self.close()
        return False

    def close(self) -> None:
        """See Result. The statement goes on to its end; its rows are discarded."""
        self._first = None
        while not self._is_over:
            with self._answering():
                self._next()

    def give_up(self) -> None:
        """Know that nothing more is coming."""
        self._first = None
        self._end()

    @staticmethod
    def drain(connection: Connection) -> None:
        """Throw away all that is still coming."""
        while connection.wait(generators.fetch(connection.pgconn)) is not None:
            pass

    def _send(self, statement: str, values: Sequence[Any]) -> None:
        pgconn = self._connection.pgconn
        transformer = self._transformer
        bound = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        pgconn.send_query_params(
            statement.encode(),
            bound or None,
            param_types=transformer.types if bound else None,
            param_formats=transformer.formats if bound else None,
        )
        if capabilities.has_stream_chunked():
            pgconn.set_chunked_rows_mode(BLOCK)
        else:
            pgconn.set_single_row_mode()
        self._connection.wait(generators.send(pgconn))

    def _next(self) -> PGresult | None:
        """Return the next rows, the first of which may be none; None when all is answered."""
        result: PGresult | None = self._connection.wait(generators.fetch(self._connection.pgconn))
        status = None if result is None else result.status
        if result is None:
            return None
        if status in _ROWS or status in _LAST:
            self._note(result)
        if status in _ROWS:
            return result
        if status in _LAST:
            self.drain(self._connection)
            self._end()
            return result if result.nfields and not self.columns else None
        if status in _COPIES:
            self._connection.close()
            text = "COPY from and to the client has no file here: export a result instead"
            raise SqlFailed(text, ErrorVerdict.PERMANENT)
        error = psycopg.errors.error_from_result(result)
        with suppress(psycopg.Error):  # the server may have closed the connection after saying why
            self.drain(self._connection)
        raise error

    def _note(self, result: PGresult) -> None:
        status = result.command_status or b""  # comes with the last rows
        if status:
            self.status = status.decode()
        if status.startswith(_CHANGING):
            self.row_count = result.command_tuples

    def _loaded(self, result: PGresult) -> list[Row]:
        self._transformer.set_pgresult(result)
        try:
            return self._transformer.load_rows(0, result.ntuples, tuple)
        except psycopg.DataError:
            # Dates that Python has none for, such as "infinity" and years before 1: as texts.
            return [
                tuple(self._loaded_value(result, row, column) for column in range(result.nfields))
                for row in range(result.ntuples)
            ]

    def _loaded_value(self, result: PGresult, row: int, column: int) -> Any:
        value = result.get_value(row, column)
        if value is None:
            return None
        loader = self._transformer.get_loader(result.ftype(column), psycopg.pq.Format.TEXT)
        try:
            return loader.load(value)
        except psycopg.DataError:
            return bytes(value).decode()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            with self._translated():
                yield
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        self._is_over = True
        self._ended()
