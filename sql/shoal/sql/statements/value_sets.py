"""``column IN (any number of values)`` as a statement that is always the same.

``Column.in_`` makes a statement with as many placeholders as there are values, anew each time. Here
all values are one parameter, so the statement is built, and prepared, once.
"""

import json
from collections.abc import Collection
from typing import Any, Self

from sqlalchemy import BigInteger, BindParameter, Boolean, ColumnElement, Dialect, Text, bindparam
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeDecorator, TypeEngine

from shoal.core.untrusted import encodable


class _Numbers(TypeDecorator[Collection[int]]):
    """Integers: an array on PostgreSQL, JSON elsewhere."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(ARRAY(BigInteger()))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: Collection[int] | None, dialect: Dialect) -> Any:
        assert value is not None
        return list(value) if dialect.name == "postgresql" else json.dumps(list(value))


def numbers(name: str) -> BindParameter[Any]:
    """Return a parameter that holds integers, for ``Among``."""
    return bindparam(name, type_=_Numbers())


class Among(FunctionElement[bool]):
    """``Among(column, numbers("ids"))``: whether the column's value is one of the ids."""

    name = "among"
    type = Boolean()
    inherit_cache = True

    def __init__(self, column: ColumnElement[int], values: BindParameter[Any]) -> None:
        super().__init__(column, values)

    def self_group(self, against: OperatorType | None = None) -> Self:
        """Stay as it is: as a condition alone SQLite would be given ``… = 1``, and scan."""
        return self


@compiles(Among, "sqlite")
def _sqlite(element: Among, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (compiler.process(one, **options) for one in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608 - compiled parts


@compiles(Among, "postgresql")
def _postgresql(element: Among, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (compiler.process(one, **options) for one in element.clauses)
    return f"{column} = ANY ({values})"


class _Pairs(TypeDecorator[Collection[tuple[str, str]]]):
    """Pairs of texts, as JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(
        self, value: Collection[tuple[str, str]] | None, dialect: Dialect
    ) -> str:
        assert value is not None
        return json.dumps([[encodable(text) for text in pair] for pair in value])


def pairs(name: str) -> BindParameter[Any]:
    """Return a parameter that holds pairs of texts, for ``AmongPairs``."""
    return bindparam(name, type_=_Pairs())


class AmongPairs(FunctionElement[bool]):
    """``AmongPairs(first, second, pairs("names"))``: whether both values are one of the pairs."""

    name = "among_pairs"
    type = Boolean()
    inherit_cache = True

    def __init__(
        self, first: ColumnElement[str], second: ColumnElement[str], values: BindParameter[Any]
    ) -> None:
        super().__init__(first, second, values)

    def self_group(self, against: OperatorType | None = None) -> Self:
        """Stay as it is, as ``Among`` does."""
        return self


@compiles(AmongPairs, "sqlite")
def _sqlite_pairs(element: AmongPairs, compiler: SQLCompiler, **options: Any) -> str:
    first, second, values = (compiler.process(one, **options) for one in element.clauses)
    each = "json_extract(value, '$[0]'), json_extract(value, '$[1]')"
    return f"({first}, {second}) IN (SELECT {each} FROM json_each({values}))"  # noqa: S608


@compiles(AmongPairs, "postgresql")
def _postgresql_pairs(element: AmongPairs, compiler: SQLCompiler, **options: Any) -> str:
    first, second, values = (compiler.process(one, **options) for one in element.clauses)
    every = f"json_array_elements(CAST({values} AS json)) AS pair"
    return f"({first}, {second}) IN (SELECT pair ->> 0, pair ->> 1 FROM {every})"  # noqa: S608
