"""Queries that modules hold and ask again and again: translated once.

As ``prepared`` does for changes: SQLAlchemy says how a query reads and how values are stored, and
takes no part when it is asked.
"""

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import CompoundSelect, Dialect, Select, TextualSelect
from sqlalchemy.exc import StatementError
from sqlalchemy.sql.compiler import SQLCompiler

from shoal.sql.driver.prepared import Values

Query = Select[Any] | CompoundSelect[Any] | TextualSelect


class PreparedQuery:
    """One query, translated for one kind of database."""

    def __init__(self, query: Query, dialect: Dialect) -> None:
        compiled = query.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        self.text = str(compiled)
        self._query = query  # keeps its id, by which we are found, from being used again
        self._own = {  # values that stand in the query itself
            name: bind.value for name, bind in compiled.binds.items() if not bind.required
        }
        processors = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect)
            for name, bind in compiled.binds.items()
        }
        self._is_positional = compiled.positional
        order = compiled.positiontup if compiled.positional else processors
        self._parameters = [(name, processors[name]) for name in order or ()]
        columns = list(query.selected_columns)
        self._row = _maker([str(column.key) for column in columns])
        results = [column.type.dialect_impl(dialect) for column in columns]
        made = [one.result_processor(dialect, None) for one in results]
        self._results = [(i, of) for i, of in enumerate(made) if of is not None]

    def parameters(self, values: Values) -> Any:
        """Return values as the driver wants them. Raises StatementError for what cannot be."""
        given = {**self._own, **values} if self._own else values
        try:
            made = [(n, given[n] if of is None else of(given[n])) for n, of in self._parameters]
        except Exception as error:
            raise StatementError(str(error), None, None, error) from error
        return tuple([value for _, value in made]) if self._is_positional else dict(made)

    def rows(self, found: Iterable[Sequence[Any]]) -> list[Any]:
        """Return what the driver has found as named tuples."""
        if not self._results:
            return list(map(self._row, found))
        rows = []
        for one in found:
            values = list(one)
            for i, of in self._results:
                values[i] = of(values[i])
            rows.append(self._row(values))
        return rows


def _maker(names: Sequence[str]) -> Callable[[Iterable[Any]], Any]:
    """Return what makes named tuples."""
    make: Any = namedtuple  # the names are not known to a type checker
    row = make("Row", names)
    maker: Callable[[Iterable[Any]], Any] = row._make
    return maker


_known: dict[tuple[int, str], PreparedQuery] = {}


def prepared_query(query: Query, dialect: Dialect) -> PreparedQuery:
    """Return a query that a module holds, made for a kind of database."""
    key = (id(query), dialect.name)
    if (found := _known.get(key)) is None:
        found = _known[key] = PreparedQuery(query, dialect)
    return found
