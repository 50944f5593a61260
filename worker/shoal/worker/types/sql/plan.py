"""What a task will run, made before anything runs: statements split, values bound."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from shoal.core.errors import shortened
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.syntax import runs_what_it_explains
from shoal.worker.types.sql.sql import SqlParams, Transaction
from shoal.worker.types.sql.statements.dialects import Dialect
from shoal.worker.types.sql.statements.lexer import InvalidStatement
from shoal.worker.types.sql.statements.parameters import BindingScope, bind
from shoal.worker.types.sql.statements.scripts import Slice, split
from shoal.worker.types.sql.statements.value_types import NoValue

_LONGEST_VALUE = 60  # characters of a value in the log
_READS = frozenset(
    {"SELECT", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC", "USE", "SET"}
)
_ENDS_TRANSACTION = frozenset({"COMMIT", "END", "ABORT"})


@dataclass(frozen=True)
class PlannedStatement:
    """One statement: as written, and as it is sent. ``part`` is sql, before or after."""

    part: str
    written: Slice
    text: str
    values: tuple[Any, ...]
    bound: str  # names and values, for people

    @property
    def only_reads(self) -> bool:
        """Whether it changes nothing for sure."""
        first = self.written.words[0] if self.written.words else ""
        return first in _READS and not (first == "EXPLAIN" and runs_what_it_explains(self.text))


@dataclass(frozen=True)
class StatementPlan:
    """All statements of a task."""

    before: tuple[PlannedStatement, ...]
    sql: tuple[PlannedStatement, ...]
    after: tuple[PlannedStatement, ...]

    @property
    def total(self) -> int:
        """How many statements there are."""
        return len(self.before) + len(self.sql) + len(self.after)


@dataclass(frozen=True)
class Slices:
    """The statements of a task, by part."""

    parts: dict[str, tuple[Slice, ...]]


def take_apart(params: SqlParams, sql: str, dialect: Dialect) -> Slices:
    """Split the texts of the params, of which ``sql`` may be a file's content.

    Raises WorkFailed: nothing has run then.
    """
    parts = {}
    for part, text in (("before", params.before), ("sql", sql), ("after", params.after)):
        try:
            statements = split(text, dialect, params.separator).statements
        except InvalidStatement as error:
            raise WorkFailed(f"`{part}`, {error}", permanent=True) from None
        if params.transaction is Transaction.TASK:
            for statement in statements:
                _refuse_transactions(part, statement)
        parts[part] = statements
    if not parts["sql"]:
        raise WorkFailed("`sql` holds no statement, only comments", permanent=True)
    return Slices(parts)


def bind_all(
    slices: Slices,
    params: SqlParams,
    scope: BindingScope,
    dialect: Dialect,
    placeholder: Callable[[int, str], str],
    quote: Callable[[str], str],
    secrets: Collection[str],
) -> StatementPlan:
    """Bind the parameters of all statements; those with ``secrets`` in them are not shown.

    Raises WorkFailed: nothing has run then.
    """
    planned: dict[str, tuple[PlannedStatement, ...]] = {}
    for part, statements in slices.parts.items():
        found = []
        for number, one in enumerate(statements, 1):
            try:
                got = bind(one.text, dialect, scope, placeholder, quote)
            except (InvalidStatement, NoValue) as error:
                where = f"`{part}`, statement {number}"
                raise WorkFailed(f"{where}: {error}", permanent=True) from None
            shown = ", ".join(
                f"{name} = {_shown(scope.parameters[name], secrets)}"
                for name in dict.fromkeys(got.names)
            )
            found.append(PlannedStatement(part, one, got.text, got.values, shown))
        planned[part] = tuple(found)
    return StatementPlan(planned["before"], planned["sql"], planned["after"])


def _shown(value: str, secrets: Collection[str]) -> str:
    # Cut or escaped, a secret would not be recognised by what masks the log.
    if any(secret and secret in value for secret in secrets):
        return "***"
    return shortened(repr(value), _LONGEST_VALUE)


def _refuse_transactions(part: str, statement: Slice) -> None:
    words = statement.words
    first, second = (*words, "", "")[:2]
    ends = first in _ENDS_TRANSACTION or (first == "ROLLBACK" and "TO" not in words)
    begins = words[:2] == ("START", "TRANSACTION") or (
        first == "BEGIN" and second in ("", "TRANSACTION", "TRAN", "WORK", "DEFERRED", "IMMEDIATE")
    )
    if ends or begins:
        text = (
            f"`{part}`: {' '.join(words[:2])} inside the task's own transaction; leave it out, or "
            "write `transaction: statement` and begin and commit as you like"
        )
        raise WorkFailed(text, permanent=True)
