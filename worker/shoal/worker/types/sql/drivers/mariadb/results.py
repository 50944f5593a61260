"""What a statement returns: result sets, one after the other, row by row as they come."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.cursors import SSCursor

from shoal.worker.types.sql.drivers.rows import BLOCK, Row
from shoal.worker.types.sql.session import Column

_BINARY = 63  # the character set of what is not text
_TEXTS = {
    FIELD_TYPE.TINY_BLOB: ("tinyblob", "tinytext"),
    FIELD_TYPE.BLOB: ("blob", "text"),
    FIELD_TYPE.MEDIUM_BLOB: ("mediumblob", "mediumtext"),
    FIELD_TYPE.LONG_BLOB: ("longblob", "longtext"),
    FIELD_TYPE.VAR_STRING: ("varbinary", "varchar"),
    FIELD_TYPE.VARCHAR: ("varbinary", "varchar"),
    FIELD_TYPE.STRING: ("binary", "char"),
}
_NAMES = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.DECIMAL: "decimal",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "double",
    FIELD_TYPE.NULL: "null",
    FIELD_TYPE.TIMESTAMP: "timestamp",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.YEAR: "year",
    FIELD_TYPE.BIT: "bit",
    FIELD_TYPE.JSON: "json",
    FIELD_TYPE.ENUM: "enum",
    FIELD_TYPE.SET: "set",
    FIELD_TYPE.GEOMETRY: "geometry",
}


class ResultSets:
    """The results of one statement. ``translated`` is around all that the server answers;
    ``ended`` is called, with the number of warnings, when it has answered everything.
    """

    def __init__(
        self,
        cursor: SSCursor,
        translated: Callable[[], AbstractContextManager[None]],
        ended: Callable[[int], None],
    ) -> None:
        self.columns: Sequence[Column] = ()
        self.row_count: int | None = None
        self._cursor, self._translated, self._ended = cursor, translated, ended
        self._warnings = 0
        self._is_over = False
        self._is_read = True  # the present set

    def start(self, statement: str) -> None:
        """Send the statement and wait for its first result set, or for its end."""
        with self._answering():
            self._cursor.execute(statement)
            self._arrived()
            if self._cursor.description is None:
                self._next_with_rows()

    def __iter__(self) -> Iterator[Row]:
        """See Result."""
        while not self._is_read:
            with self._answering():
                block = self._cursor.fetchmany(BLOCK)
                if not block:
                    self._set_is_read()
            yield from block

    def next_set(self) -> bool:
        """See Result."""
        while not self._is_read:
            with self._answering():
                if not self._cursor.fetchmany(BLOCK):
                    self._set_is_read()
        if self._is_over:
            return False
        with self._answering():
            return self._next_with_rows()

    def close(self) -> None:
        """See Result. The statement goes on to its end; its rows are discarded."""
        while self.next_set():
            pass

    def give_up(self) -> None:
        """Forget the rest: the connection is closed, or the statement was ended."""
        if not self._is_over:
            with suppress(pymysql.MySQLError, OSError, AttributeError):
                self._cursor.close()  # reads what is left, as there is no other way
            self._forget()
            self._end()

    def _set_is_read(self) -> None:
        self._is_read = True
        self._warnings += self._cursor.warning_count
        if not self._has_more():
            self._end()

    def _next_with_rows(self) -> bool:
        """Go on to the next set that has rows; those of statements without are counted."""
        while not self._is_over:
            if not self._cursor.nextset():
                self._end()
                return False
            self._arrived()
            if self._cursor.description is not None:
                return True
        return False

    def _arrived(self) -> None:
        self.columns = self._described()
        self._is_read = not self.columns
        if self._is_read:
            self.row_count = self._cursor.rowcount
            self._warnings += self._cursor.warning_count
            if not self._has_more():
                self._end()

    def _has_more(self) -> bool:
        result = self._cursor._result
        return bool(result is not None and result.has_next)

    def _described(self) -> list[Column]:
        if self._cursor.description is None:
            return []
        fields = self._cursor._result.fields
        return [Column(field.name, _type_name(field)) for field in fields]

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            with self._translated():
                yield
        except BaseException:
            self._forget()
            self._end()
            raise

    def _forget(self) -> None:
        # The driver would read on when the objects are collected, from whatever is there then.
        result = self._cursor._result
        if result is not None:
            result.unbuffered_active = False
        self._cursor.connection = None
        self._is_read = True

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._ended(self._warnings)


def _type_name(field: Any) -> str:
    if field.type_code in _TEXTS:
        return _TEXTS[field.type_code][field.charsetnr != _BINARY]
    return _NAMES.get(field.type_code, f"type {field.type_code}")
