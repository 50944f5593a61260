"""What is asked of the database: one query of all figures, and one for the rows that fail.

Names are quoted by the driver, values are bound. Conditions and expressions of the task stand in
parentheses on lines of their own, so that a comment in them ends with them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from shoal.core.data_sources import DataSource
from shoal.core.hints import Hints
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.quality.kind import (
    Accepted,
    Check,
    Fresh,
    Holds,
    Limit,
    Matches,
    NotNull,
    Range,
    RowCheck,
    Same,
    Unique,
)
from shoal.worker.types.sql.databases import database_kind
from shoal.worker.types.sql.session import Session
from shoal.worker.types.sql.statements.lexer import PLACEHOLDER, InvalidStatement
from shoal.worker.types.sql.statements.parameters import BindingScope, Bound, bind
from shoal.worker.types.sql.statements.scripts import split
from shoal.worker.types.sql.statements.value_types import NoValue, ValueType


@dataclass(frozen=True)
class Table:
    """Whose rows are asked for: a table, and a condition of SQL ("" is none)."""

    name: str
    where: str


class Asker:
    """Makes the statements about one table of one session."""

    def __init__(
        self,
        source: DataSource,
        session: Session,
        table: Table,
        parameters: Mapping[str, str],
        types: Mapping[str, ValueType],
    ) -> None:
        self._source, self._session = source, session
        self._from = f"FROM {session.quote(table.name)}"
        self._where = f"(\n{table.where}\n)" if table.where.strip() else ""
        self._parameters, self._types = parameters, types

    def figures(self, checks: Sequence[Check]) -> tuple[Bound, Sequence[Check]]:
        """Return the query of all that one query can count, and whose figures its columns are.

        The first column is the number of rows. Raises WorkFailed.
        """
        statement = _Statement(self._parameters, self._types)
        columns, asked = ["count(*)"], list[Check]()
        for check in checks:
            if column := self._figure(check, statement):
                columns.append(column)
                asked.append(check)
        text = f"SELECT {', '.join(columns)} {self._from}{self._all()}"
        return self._bound(statement, text, "the checks"), asked

    def measure(self, expression: str, title: str) -> Bound:
        """Return the query of one figure over the rows. Raises WorkFailed."""
        statement = _Statement(self._parameters, self._types)
        return self._bound(statement, f"SELECT (\n{expression}\n) {self._from}{self._all()}", title)

    def columns(self) -> Bound:
        """Return a query without rows, for the names of the columns."""
        statement = _Statement(self._parameters, self._types)
        return self._bound(statement, f"SELECT * {self._from} WHERE 1 = 0", "the table")

    def failing(self, check: RowCheck, shown: Sequence[str]) -> Bound:
        """Return the query of the rows that fail a check, with the columns ``shown``."""
        statement = _Statement(self._parameters, self._types)
        if isinstance(check, Unique):
            quoted = ", ".join(self._names([one for one in check.columns if one in shown]))
            text = f"SELECT {quoted}, count(*) AS times {self._groups(check)}"
        else:
            fails = self._fails(check, statement)
            condition = f"{self._where} AND {fails}" if self._where else fails
            text = f"SELECT {', '.join(self._names(shown))} {self._from} WHERE {condition}"
        return self._bound(statement, text, check.title)

    def own(self, sql: str, title: str) -> Bound:
        """Return a query of the task's own. Raises WorkFailed."""
        return self._bound(_Statement(self._parameters, self._types), sql, title)

    # -- parts of statements ---------------------------------------------------------------------

    def _all(self) -> str:
        return f" WHERE {self._where}" if self._where else ""

    def _names(self, columns: Sequence[str]) -> list[str]:
        return [self._session.quote(column) for column in columns]

    def _figure(self, check: Check, statement: "_Statement") -> str:
        match check:
            case Unique():
                # Of five rows that are the same, four are too many.
                groups = f"SELECT count(*) - 1 AS more {self._groups(check)}"
                return f"(SELECT coalesce(sum(more), 0) FROM ({groups}) shoal_groups)"  # noqa: S608 - names are quoted, values bound
            case RowCheck():
                fails = self._fails(check, statement)
                return f"coalesce(sum(CASE WHEN {fails} THEN 1 ELSE 0 END), 0)"
            case Fresh():
                return f"max({self._session.quote(check.column)})"
            case Same():
                return f"(\n{check.measure}\n)"
            case _:
                return ""

    def _groups(self, check: Unique) -> str:
        names = self._names(check.columns)
        conditions = [f"{name} IS NOT NULL" for name in names]
        if self._where:
            conditions.insert(0, self._where)
        together = ", ".join(names)
        where = " AND ".join(conditions)
        return f"{self._from} WHERE {where} GROUP BY {together} HAVING count(*) > 1"

    def _fails(self, check: RowCheck, statement: "_Statement") -> str:
        """Return the condition that is true for the rows that fail, and NULL or false else."""
        match check:
            case NotNull():
                return f"{self._session.quote(check.column)} IS NULL"
            case Range():
                name = self._session.quote(check.column)
                sides = ((check.min, "<"), (check.max, ">"))
                return _either(
                    f"{name} {operator} {statement.value(limit)}"
                    for limit, operator in sides
                    if limit is not None
                )
            case Accepted():
                name = self._session.quote(check.column)
                values = ", ".join(statement.value(value) for value in check.values)
                return f"{name} NOT IN ({values})"
            case Matches():
                matches = database_kind(self._source).matches
                if matches is None:
                    text = f"{check.title}: {self._source.kind} has no regular expressions"
                    raise WorkFailed(f"{text}; write a condition instead", permanent=True)
                name = self._session.quote(check.column)
                pattern = self._pattern(check, statement)
                return f"NOT ({matches.format(name, pattern)})"
            case Holds():
                return f"NOT (\n{check.condition}\n)"
            case _:
                raise AssertionError(check)

    def _pattern(self, check: Matches, statement: "_Statement") -> str:
        if self._source.kind == "sqlite":  # its REGEXP is Python's, and says little
            try:
                re.compile(filled(check.pattern, self._parameters))
            except re.error as error:
                text = f"{check.title}: the pattern is not a regular expression: {error}"
                raise WorkFailed(text, permanent=True) from None
        return statement.value(check.pattern)

    def _bound(self, statement: "_Statement", text: str, title: str) -> Bound:
        dialect = database_kind(self._source).dialect
        try:
            found = split(text, dialect).statements
            if len(found) != 1:
                reason = "is more than one statement" if found else "holds no statement"
                raise WorkFailed(f"{title}: {reason}; leave semicolons out", permanent=True)
            return bind(
                found[0].text,
                dialect,
                statement.scope(),
                self._session.placeholder,
                self._session.quote,
            )
        except InvalidStatement as error:
            raise WorkFailed(f"{title}: {error.reason}", permanent=True) from None
        except NoValue as error:
            raise WorkFailed(f"{title}: {error}", permanent=True) from None


class _Statement:
    """The values of one statement: the task's parameters, and limits under names of their own."""

    def __init__(self, parameters: Mapping[str, str], types: Mapping[str, ValueType]) -> None:
        self._given = parameters
        self._parameters, self._types = dict(parameters), dict(types)

    def value(self, value: bool | Limit) -> str:
        """Return what stands for a value in the statement. Raises WorkFailed."""
        name = f"shoal_value_{len(self._parameters)}"
        match value:
            case str():
                whole = PLACEHOLDER.fullmatch(value)
                kind = self._types.get(whole[1], ValueType.TEXT) if whole else ValueType.TEXT
                text = filled(value, self._given)
            case bool():
                text, kind = str(value).lower(), ValueType.BOOLEAN
            case int():
                text, kind = str(value), ValueType.INTEGER
            case _:
                text, kind = repr(value), ValueType.FLOAT
        self._parameters[name], self._types[name] = text, kind
        return f"${{{name}}}"

    def scope(self) -> BindingScope:
        """Return what names mean in the statement."""
        return BindingScope(self._parameters, self._types, {})


def filled(text: str, parameters: Mapping[str, str]) -> str:
    """Return ``text`` with the task's parameters put in. Raises WorkFailed."""
    for name in PLACEHOLDER.findall(text):
        if name not in parameters:
            hint = Hints().of(name, list(parameters))
            reason = f"there is no parameter {name!r}{hint}; give the task one of this name"
            raise WorkFailed(reason, permanent=True)
    return PLACEHOLDER.sub(lambda found: parameters[found[1]], text)


def number(value: Any, what: str) -> Decimal:
    """Return a figure as a number. Raises WorkFailed."""
    try:
        figure = Decimal(str(int(value) if isinstance(value, bool) else value))
    except ArithmeticError:
        figure = Decimal("nan")
    if not figure.is_finite():
        raise WorkFailed(f"{what}: {str(value)[:60]!r} is not a number", permanent=True)
    return figure


def _either(conditions: Any) -> str:
    return "(" + " OR ".join(conditions) + ")"
