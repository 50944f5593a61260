"""Changes that modules hold and make again and again: translated once.

SQLAlchemy's way from a statement to its text costs several times what SQLite takes for it, even
when the text is in its cache. Here it is taken once: the statement to SQL, and how each value is
stored. Values, errors and what listeners get are as with statements that are made on the spot.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Delete, Dialect, Insert, Update
from sqlalchemy.exc import StatementError
from sqlalchemy.sql.compiler import SQLCompiler

Values = Mapping[str, Any]
Change = Insert | Update | Delete


class PreparedStatements:
    """One statement, translated for rows of values with certain names."""

    def __init__(self, statement: Change, names: tuple[str, ...], dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=names, for_executemany=True)
        assert isinstance(compiled, SQLCompiler)
        self.text = str(compiled)
        self._statement = statement  # keeps its id, by which we are found, from being used again
        self._is_positional = compiled.positional
        processors = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect)
            for name, bind in compiled.binds.items()
        }
        order = compiled.positiontup if compiled.positional else processors
        self._columns = [(name, processors[name]) for name in order or ()]

    def rows(self, values: Sequence[Values]) -> list[Any]:
        """Return rows as the driver wants them. Raises StatementError for what cannot be stored."""
        columns = self._columns
        try:
            if self._is_positional:
                return [
                    tuple([one[n] if of is None else of(one[n]) for n, of in columns])
                    for one in values
                ]
            return [
                {n: one[n] if of is None else of(one[n]) for n, of in columns} for one in values
            ]
        except Exception as error:
            raise StatementError(str(error), None, None, error) from error


_known: dict[tuple[int, tuple[str, ...], str], PreparedStatements] = {}


def prepared(statement: Change, names: tuple[str, ...], dialect: Dialect) -> PreparedStatements:
    """Return a statement that a module holds, for rows of values with these names."""
    key = (id(statement), names, dialect.name)
    if (found := _known.get(key)) is None:
        found = _known[key] = PreparedStatements(statement, names, dialect)
    return found


def notify(connection: Connection, text: str, values: Any, is_many: bool = False) -> None:
    """Notify listeners of SQLAlchemy of what is about to be executed."""
    for listener in connection.dispatch.before_cursor_execute:
        listener(connection, None, text, values, None, is_many)


def notify_of_commit(connection: Connection) -> None:
    """Notify listeners of SQLAlchemy that a transaction is about to be committed."""
    for listener in connection.dispatch.commit:
        listener(connection)
