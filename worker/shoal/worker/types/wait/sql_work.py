"""One look of a WAIT_SQL task, in the process of its attempt."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Any

from shoal.core.data_sources import DataSource
from shoal.core.errors import shortened
from shoal.core.logic import expressions
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Cancelled, Work
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.cancellation import Canceller
from shoal.worker.types.sql.databases import database_kind
from shoal.worker.types.sql.drivers.failures import StatementCancelled, StatementTimedOut
from shoal.worker.types.sql.results.values import as_text
from shoal.worker.types.sql.session import ErrorVerdict, Session
from shoal.worker.types.sql.statements.lexer import InvalidStatement
from shoal.worker.types.sql.statements.parameters import BindingScope, Bound, bind
from shoal.worker.types.sql.statements.scripts import split
from shoal.worker.types.sql.statements.value_types import NoValue
from shoal.worker.types.sql.verdicts import LONGEST_MESSAGE
from shoal.worker.types.wait.kind import WaitSqlParams
from shoal.worker.types.wait.looks import not_yet

_SHOWN = 100  # characters of a value


def run(work: Work[WaitSqlParams]) -> None:
    """Look once. Raises NotYet, WorkFailed, Cancelled."""
    source = work.data_source(work.params.data_source)
    try:
        row = _first_row(work, source)
    except WorkFailed as failed:
        if failed.permanent:
            raise
        not_yet(work, str(failed))
    value = as_text(next(iter(row.values()), None)) if row is not None else ""
    if answer := _missing(work, row, value):
        not_yet(work, answer)
    work.output(value=value)
    work.log(f"found {shortened(value, _SHOWN) or 'it'}")


def settle(work: Work[WaitSqlParams]) -> None:
    """End what the attempt has left running in the database. Raises WorkFailed."""
    source = work.data_source(work.params.data_source)
    drivers.settle(source, tag=work.tag, attempt=work.attempt)
    work.settled()


def _first_row(work: Work[WaitSqlParams], source: DataSource) -> Mapping[str, Any] | None:
    """Return the first row of the query by its columns. Raises WorkFailed, Cancelled.

    A failure that may pass is not permanent: then nothing goes on at the server either.
    """
    try:
        session = drivers.connect(
            source,
            tag=work.tag,
            attempt=work.attempt,
            log=work.log,
            read_only=True,
            statement_timeout_s=work.params.statement_timeout,
        )
    except Exception:
        work.settled()  # nothing has begun
        raise
    is_idle = False
    try:
        with Canceller(session, work):
            work.require_wanted()
            row = _asked(session, _bound(work, source, session))
            is_idle = True
            return row
    except Exception as error:
        if isinstance(error, Cancelled) or work.is_cancelled:
            raise
        verdict = drivers.classify(error)
        answered = isinstance(error, StatementCancelled | StatementTimedOut)
        is_idle = answered or verdict is ErrorVerdict.PERMANENT
        text = shortened(str(error) or type(error).__name__, LONGEST_MESSAGE)
        raise WorkFailed(text, permanent=verdict is ErrorVerdict.PERMANENT) from error
    finally:
        with suppress(Exception):  # what went wrong before is what people need to know
            session.close()
        if is_idle:
            work.settled()


def _bound(work: Work[WaitSqlParams], source: DataSource, session: Session) -> Bound:
    params, dialect = work.params, database_kind(source).dialect
    try:
        statements = split(params.sql, dialect).statements
        if len(statements) != 1:
            text = f"sql: one query is expected, this has {len(statements)} statements"
            raise WorkFailed(text, permanent=True)
        scope = BindingScope(work.parameters, params.types, {})
        return bind(statements[0].text, dialect, scope, session.placeholder, session.quote)
    except InvalidStatement as error:
        raise WorkFailed(f"sql: {error.reason}", permanent=True) from None
    except NoValue as error:
        raise WorkFailed(f"sql: {error}", permanent=True) from None


def _asked(session: Session, bound: Bound) -> Mapping[str, Any] | None:
    result = session.execute(bound.text, bound.values)
    try:
        names = [column.name for column in result.columns]
        if not names:
            raise WorkFailed("sql: a query is expected, this returns no rows", permanent=True)
        rows: Sequence[tuple[Any, ...]] = list(islice(result, 1))
        return dict(zip(names, rows[0], strict=True)) if rows else None
    finally:
        result.close()


def _missing(work: Work[WaitSqlParams], row: Mapping[str, Any] | None, value: str) -> str:
    """Return why the task has to wait on; empty: it has not."""
    if row is None:
        return "the query returns no row"
    until = work.params.until
    if not until:
        first = next(iter(row.values()))
        return "" if _counts(first) else f"the value is {_shown(first)}"
    texts = {name: as_text(each) for name, each in row.items()}
    scope = {**work.parameters, **texts, "value": value}
    try:
        if expressions.is_true(until, scope):
            return ""
    except expressions.InvalidExpression as error:
        raise WorkFailed(f"`until`: {error}", permanent=True) from None
    used = sorted(expressions.names(until) & scope.keys())
    values = ", ".join(f"{name} = {shortened(scope[name], _SHOWN)}" for name in used)
    return f"`until` is not true: {until} ({values})"


def _counts(value: Any) -> bool:
    """Whether a first value says that the wait is over."""
    if isinstance(value, str):
        return value.strip().lower() not in ("", "0", "false")
    if isinstance(value, bool | int | float | Decimal):
        return bool(value)
    return value is not None


def _shown(value: Any) -> str:
    return "NULL" if value is None else repr(shortened(as_text(value), _SHOWN))
