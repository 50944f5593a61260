"""The work of a SQL task, in the process of its attempt.

Everything is taken apart and bound before the first statement runs. Then, in one transaction unless
asked otherwise: ``before``, ``sql``, the judgement of ``fail_if``, ``after``, COMMIT, and only then
the outputs. A failure rolls back, and ``after`` runs in a transaction of its own.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from shoal.core.data_sources import DataSource
from shoal.core.errors import shortened
from shoal.core.logic import expressions
from shoal.core.timing.durations import format_duration
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Cancelled, Work
from shoal.worker.types.program import CannotRun, program_text
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.cancellation import Canceller
from shoal.worker.types.sql.databases import database_kind
from shoal.worker.types.sql.drivers.failures import (
    SqlFailed,
    StatementCancelled,
    StatementTimedOut,
)
from shoal.worker.types.sql.plan import (
    PlannedStatement,
    Slices,
    StatementPlan,
    bind_all,
    take_apart,
)
from shoal.worker.types.sql.results.collectors import (
    Collector,
    Nothing,
    check_outputs,
    collector,
)
from shoal.worker.types.sql.results.preview import one_line, preview
from shoal.worker.types.sql.session import ErrorVerdict, Result, Session
from shoal.worker.types.sql.sql import ResultKind, SqlParams, Transaction
from shoal.worker.types.sql.statements.parameters import BindingScope
from shoal.worker.types.sql.verdicts import LONGEST_MESSAGE, NOT_AGAIN, failed

_SHOWN = 120  # characters of a statement in the log
_PROGRESS_EVERY = 1_000  # rows


def run(work: Work[SqlParams], connect: Callable[..., Session] = drivers.connect) -> None:
    """Run the task on the session that ``connect`` opens. Raises WorkFailed, Cancelled."""
    params = work.params
    source = work.data_source(params.data_source)
    try:
        dialect = database_kind(source).dialect
        slices = take_apart(params, _statements(work), dialect)
        session = connect(
            source,
            tag=work.tag,
            attempt=work.attempt,
            log=work.log,
            read_only=params.read_only,
            statement_timeout_s=params.statement_timeout,
        )
    except Exception:
        work.settled()  # nothing has begun
        raise
    is_idle = False
    try:
        with Canceller(session, work):
            execution = _Execution(work, session, _bound(work, source, slices, session))
            try:
                execution.run()
            finally:
                is_idle = execution.is_idle
    finally:
        with suppress(Exception):  # what went wrong before is what people need to know
            session.close()
        if is_idle:
            work.settled()


def _statements(work: Work[SqlParams]) -> str:
    try:
        return program_text(work.folder, work.params.sql, work.params.file)
    except CannotRun as error:
        raise WorkFailed(str(error), permanent=True) from None


def _bound(
    work: Work[SqlParams], source: DataSource, slices: Slices, session: Session
) -> StatementPlan:
    params = work.params
    try:
        plan = bind_all(
            slices,
            params,
            BindingScope(work.parameters, params.types, params.identifiers),
            database_kind(source).dialect,
            session.placeholder,
            session.quote,
            secrets=[*work.secrets.values(), source.password],
        )
    except WorkFailed:
        work.settled()  # nothing has begun
        raise
    work.log(f"{source.name} ({source.kind}): {_described(plan, params)}")
    return plan


def settle(work: Work[SqlParams]) -> None:
    """End what the attempt has left running in the database. Raises WorkFailed."""
    source = work.data_source(work.params.data_source)
    drivers.settle(source, tag=work.tag, attempt=work.attempt)
    work.settled()


def _described(plan: StatementPlan, params: SqlParams) -> str:
    count = "1 statement" if plan.total == 1 else f"{plan.total:,} statements"
    together = "in one transaction"
    if params.transaction is Transaction.STATEMENT:
        together = "each committed by itself"
    return f"{count}, {together}{', read only' if params.read_only else ''}"


class _Execution:
    """Runs a plan on a session."""

    def __init__(self, work: Work[SqlParams], session: Session, plan: StatementPlan) -> None:
        self._work, self._params, self._session = work, work.params, session
        self._plan, self._done = plan, 0
        self.is_idle = True  # nothing runs at the server, for sure
        self._in_transaction = False
        self._after_begun = False
        self._uncommitted = 0  # statements that have changed something in the open transaction
        self._kept = 0  # statements whose changes no rollback takes away
        self._changed = 0  # rows
        self._where = ""  # what is being done, for the reason of a failure
        self._bound = ""  # the parameters of the statement that is being sent
        self._cut = False  # the rest of the rows is not wanted

    def run(self) -> None:
        """Run it, and set the outputs. Raises WorkFailed, Cancelled."""
        try:
            self._begin()
            for planned in self._plan.before:
                self._run(planned, Nothing())
            outputs = self._run_sql()
            self._where = ""
            self._judge(outputs)
            self._after_begun, self._cut = True, False
            for planned in self._plan.after:
                self._run(planned, Nothing())
            self._commit()
        except BaseException as error:  # whatever it is, nothing half done may stay
            if self._undo() and not isinstance(error, SqlFailed):
                self.is_idle = True  # the statement was well, its rows were not
            if isinstance(error, Exception):
                self._fail(error)
            raise
        self._work.output(**outputs)

    def _run_sql(self) -> Mapping[str, str]:
        *others, last = self._plan.sql
        for planned in others:
            self._run(planned, Nothing())
        rows = collector(self._params, self._work.folder)
        try:
            return self._outputs(last, rows)
        except BaseException:
            rows.discard()
            raise

    def _outputs(self, last: PlannedStatement, rows: Collector) -> Mapping[str, str]:
        count, has_rows = self._run(last, rows)
        if self._params.result is not ResultKind.NONE and not has_rows:
            text = (
                f"`result: {self._params.result}` wants rows, but the last statement returns none"
            )
            raise WorkFailed(f"{text}; put a query last", permanent=True)
        outputs = {
            "row_count": str(count),
            "changed_rows": str(self._changed),
            **(rows.finish() if has_rows else {}),
        }
        check_outputs(outputs)
        return outputs

    # -- one statement ---------------------------------------------------------------------------

    def _run(self, planned: PlannedStatement, rows: Collector) -> tuple[int, bool]:
        """Run one statement; return how many rows it has returned or changed, and which of the two.

        Raises what the session raises, WorkFailed, Cancelled.
        """
        self._work.require_wanted()
        self._done += 1
        name = f"{self._done}/{self._plan.total}"
        shown = one_line(planned.written.text, _SHOWN)
        self._where = f"statement {name} ({one_line(planned.written.text, 60)})"
        self._bound = planned.bound
        self._work.log(f"{name} {shown}" + (f"   with {planned.bound}" if planned.bound else ""))
        self._say_progress(0)
        commits_itself = self._in_transaction and self._session.implicit_commit(planned.text)
        if commits_itself:
            self._work.log(
                "    the database commits around this statement: it and what came before stay, "
                "also when the task fails"
            )
        began = time.monotonic()
        if commits_itself or not (self._in_transaction or planned.only_reads):
            self._note_commit()
        self.is_idle = False
        result = self._session.execute(planned.text, planned.values)
        self._bound = ""
        try:
            counted = self._consume(result, rows, began)
        finally:
            result.close()
        self.is_idle = True
        self._note_change(planned, commits_itself=commits_itself)
        return counted

    def _note_change(self, planned: PlannedStatement, *, commits_itself: bool) -> None:
        changes = not planned.only_reads and not self._params.read_only
        if commits_itself:
            self._kept += self._uncommitted + 1
            self._uncommitted = 0
            self._session.begin()
        elif self._in_transaction:
            self._uncommitted += changes
        else:
            self._kept += changes

    def _consume(self, result: Result, rows: Collector, began: float) -> tuple[int, bool]:
        """Read all that a statement returns; its first rows are those that are collected."""
        returned: int | None = None
        changed = 0
        while True:
            if result.columns:
                count = self._read(result, rows if returned is None else Nothing(), began)
                returned = count if returned is None else returned
            elif result.row_count is not None:
                changed += result.row_count
                took = format_duration(time.monotonic() - began)
                self._work.log(f"    {_rows(result.row_count)} changed, {took}")
            else:
                self._work.log(f"    done, {format_duration(time.monotonic() - began)}")
            if self._cut or not result.next_set():
                break
        self._changed += changed
        return (changed, False) if returned is None else (returned, True)

    def _read(self, result: Result, rows: Collector, began: float) -> int:
        rows.start(result.columns)
        most, first = self._params.preview_rows, list[Sequence[Any]]()
        count = 0
        for row in result:
            if not rows.add(row):
                self._cut = True
                break
            if count < most:
                first.append(row)
            count += 1
            if count % _PROGRESS_EVERY == 0:
                self._say_progress(count)
        if most and first:
            names = [column.name for column in result.columns]
            table = preview(names, first)
            self._work.log("\n".join(f"    {line}" for line in table.splitlines()))
        of_all = f", the first {len(first)} are shown" if first and len(first) < count else ""
        self._work.log(f"    {_rows(count)}{of_all}, {format_duration(time.monotonic() - began)}")
        return count

    def _say_progress(self, rows: int) -> None:
        label = f"{_rows(rows)} read" if rows else ""
        self._work.progress(self._done - 1, self._plan.total, "statements", label)

    # -- the transaction -------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._params.transaction is Transaction.TASK:
            self._where = "BEGIN"
            self._session.begin()
            self._in_transaction = True

    def _commit(self) -> None:
        self._work.require_wanted()
        if self._in_transaction:
            self._where, self.is_idle = "COMMIT", False
            self._note_commit()
            self._session.commit()
            self.is_idle = True
            self._in_transaction = False
            self._work.log("committed")
        self._work.progress(self._plan.total, self._plan.total, "statements")

    def _note_commit(self) -> None:
        """From now on something may be committed that is not to be done twice."""
        if not self._params.idempotent and not self._params.read_only:
            self._work.not_repeatable(f"it is unknown whether it was committed: {NOT_AGAIN}")

    def _undo(self) -> bool:
        """Roll back, if the connection is there to do it; otherwise the server does.

        Return whether that was done.
        """
        if not self._in_transaction:
            return False
        self._in_transaction = False
        with suppress(Exception):
            self._session.rollback()
            self._work.log("rolled back")
            return True
        return False

    def _judge(self, outputs: Mapping[str, str]) -> None:
        """Raise WorkFailed if ``fail_if`` is true, or cannot be evaluated."""
        condition = self._params.fail_if
        if not condition:
            return
        scope = {**self._work.parameters, **outputs}
        try:
            is_true = expressions.is_true(condition, scope)
        except expressions.InvalidExpression as error:
            raise WorkFailed(f"`fail_if`: {error}", permanent=True) from None
        if is_true:
            names = sorted(expressions.names(condition) & scope.keys())
            values = ", ".join(f"{name} = {shortened(scope[name], 60)}" for name in names)
            raise WorkFailed(f"`fail_if` is true: {condition} ({values})")

    # -- failures --------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> NoReturn:
        """Run ``after`` where it is due, then say what the failure means for the attempt."""
        if isinstance(error, StatementCancelled | StatementTimedOut):
            self.is_idle = True  # the database has answered so
        if isinstance(error, Cancelled) or self._work.is_cancelled:
            raise error
        verdict = drivers.classify(error)
        if verdict is ErrorVerdict.PERMANENT:
            self.is_idle = True  # the database has answered
        failure = failed(
            error,
            verdict,
            where=self._where,
            bound=self._bound,
            kept=self._kept,
            params=self._params,
        )
        if not self._after_begun:
            self._run_after()
        raise failure from error

    def _run_after(self) -> None:
        """Run ``after`` by itself. Its failures are logged: the first reason counts."""
        if not self._plan.after:
            return
        self._work.log("after the failure:")
        self._done = self._plan.total - len(self._plan.after)
        try:
            self._begin()
            for planned in self._plan.after:
                self._run(planned, Nothing())
            self._commit()
        except Exception as error:  # noqa: BLE001 - drivers raise anything
            self._work.log(f"    {self._where}: {shortened(str(error), LONGEST_MESSAGE)}")
            self._undo()


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
