"""The work of a DATA_QUALITY task, in the process of its attempt.

All figures that one query can give come from one query, so that they are of the same moment. Then
the checks are judged in the order of the task, the log shows them with rows that fail, and the
outputs are set. Last, the attempt fails if a check that blocks does not hold.
"""

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.quality.judgement import (
    Judgement,
    judge_between,
    judge_fresh,
    judge_rows,
    judge_same,
)
from shoal.worker.types.quality.kind import (
    Check,
    DataQualityParams,
    Fresh,
    OnFailure,
    RowCheck,
    Rows,
    Same,
    Unique,
    Value,
)
from shoal.worker.types.quality.queries import Asker, Table
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.cancellation import Canceller
from shoal.worker.types.sql.drivers.failures import (
    SqlFailed,
    StatementCancelled,
    StatementTimedOut,
)
from shoal.worker.types.sql.results.preview import preview
from shoal.worker.types.sql.session import Column, ErrorVerdict, Session
from shoal.worker.types.sql.statements.parameters import Bound

_MOST_NAMED = 5  # checks in the reason of a failure
_OTHER = "-other"  # of the tag of the second session: no two may have the same


def run(work: Work[DataQualityParams]) -> None:
    """Run the task. Raises WorkFailed, Cancelled."""
    judging = _Run(work)
    try:
        judging.run()
    finally:
        if judging.is_idle:
            work.settled()


def settle(work: Work[DataQualityParams]) -> None:
    """End what the attempt has left running in the databases. Raises WorkFailed."""
    source = work.data_source(work.params.data_source)
    drivers.settle(source, tag=work.tag, attempt=work.attempt)
    for name in _others(work.params):
        other = work.data_source(name)
        drivers.settle(other, tag=work.tag + _OTHER, attempt=work.attempt)
    work.settled()


def _others(params: DataQualityParams) -> list[str]:
    names = (
        one.data_source or params.data_source for one in params.checks if isinstance(one, Same)
    )
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class _Result:
    check: Check
    judgement: Judgement
    blocks: bool

    @property
    def state(self) -> str:
        if self.judgement.holds:
            return "passed"
        return "failed" if self.blocks else "warned"

    def line(self) -> str:
        """Return it for people."""
        found = f"{self.check.title}: {self.judgement.figure}"
        return found if self.judgement.holds else f"{found}, {self.judgement.wanted}"


class _Run:
    """One attempt, from the first session to the verdict."""

    def __init__(self, work: Work[DataQualityParams]) -> None:
        self._work, self._params = work, work.params
        self._done, self._rows = 0, 0
        self.is_idle = True  # nothing runs at a server, for sure

    def run(self) -> None:
        """Ask, judge, show, set the outputs. Raises WorkFailed, Cancelled."""
        source = self._work.data_source(self._params.data_source)
        with ExitStack() as stack:
            session = self._connected(source, self._work.tag, stack)
            asker = self._asker(source, session, self._params.table, self._params.where)
            try:
                results = self._judged(session, asker)
                self._show(session, asker, results)
            except SqlFailed as error:
                raise self._failure(error) from error
        self._end(results)

    def _judged(self, session: Session, asker: Asker) -> list[_Result]:
        """Return what became of each check, in the order of the task."""
        checks = self._params.checks
        bound, asked = asker.figures(checks)
        _, [row] = self._answer(session, bound, self._params.table)
        rows = int(row[0])
        figures = dict(zip((id(check) for check in asked), row[1:], strict=True))
        self._work.log(f"{self._params.table}: {rows:,} {'row' if rows == 1 else 'rows'}")
        self._rows = rows
        return [
            _Result(
                check,
                self._judge(check, figures.get(id(check)), rows, session, asker),
                (check.on_failure or self._params.on_failure) is OnFailure.BLOCK,
            )
            for check in checks
        ]

    def _judge(
        self, check: Check, figure: Any, rows: int, session: Session, asker: Asker
    ) -> Judgement:
        parameters = self._work.parameters
        match check:
            case Rows():
                return judge_between(check, rows, parameters)
            case Fresh():
                return judge_fresh(check, figure, time.time())
            case Value():
                found = self._one(session, asker.own(check.sql, check.title), check.title)
                return judge_between(check, found, parameters)
            case Same():
                return judge_same(check, figure, self._elsewhere(check))
            case _:
                return judge_rows(check, figure, rows)

    def _elsewhere(self, check: Same) -> Any:
        """Return the other table's figure."""
        source = self._work.data_source(check.data_source or self._params.data_source)
        with ExitStack() as stack:
            session = self._connected(source, self._work.tag + _OTHER, stack)
            asker = self._asker(source, session, check.table, check.where)
            return self._one(session, asker.measure(check.measure, check.title), check.title)

    # -- what is shown ---------------------------------------------------------------------------

    def _show(self, session: Session, asker: Asker, results: Sequence[_Result]) -> None:
        columns: Sequence[str] | None = None
        for result in results:
            self._work.log(f"{result.state:<6}  {result.line()}")
            check = result.check
            if result.judgement.holds or not isinstance(check, RowCheck):
                continue
            if self._params.failing_rows == 0:
                continue
            if columns is None:
                described, _ = self._answer(session, asker.columns(), self._params.table)
                columns = [one.name for one in described if not self._is_hidden(one.name)]
            shown = columns
            if isinstance(check, Unique):
                shown = [one for one in check.columns if not self._is_hidden(one)]
            if shown:
                self._show_rows(session, asker.failing(check, shown))

    def _is_hidden(self, column: str) -> bool:
        # Databases that fold names give them back in another case than people write them.
        return column.casefold() in {one.casefold() for one in self._params.hide}

    def _show_rows(self, session: Session, bound: Bound) -> None:
        columns, rows = self._answer(session, bound, "", most=self._params.failing_rows)
        table = preview([column.name for column in columns], rows)
        self._work.log("\n".join(f"        {line}" for line in table.splitlines()))

    def _end(self, results: Sequence[_Result]) -> None:
        """Set the outputs, and raise WorkFailed if the task is to fail."""
        states = [result.state for result in results]
        self._work.output(
            rows=self._rows,
            checks=json.dumps(
                [
                    {
                        "name": result.check.title,
                        "check": result.check.check,
                        "state": result.state,
                        "figure": result.judgement.figure,
                        "wanted": result.judgement.wanted,
                    }
                    for result in results
                ],
                ensure_ascii=False,
            ),
            failed=states.count("failed"),
            warned=states.count("warned"),
        )
        if blocking := [result for result in results if result.state == "failed"]:
            named = "; ".join(result.line() for result in blocking[:_MOST_NAMED])
            more = len(blocking) - _MOST_NAMED
            named += f"; and {more} more" if more > 0 else ""
            count = f"{len(blocking)} of {len(results)} checks"
            verb = "does" if len(blocking) == 1 else "do"
            raise WorkFailed(f"{count} {verb} not hold: {named}")

    # -- sessions and queries --------------------------------------------------------------------

    def _connected(self, source: DataSource, tag: str, stack: ExitStack) -> Session:
        session = drivers.connect(
            source,
            tag=tag,
            attempt=self._work.attempt,
            log=self._work.log,
            read_only=True,
            statement_timeout_s=self._params.statement_timeout,
        )
        stack.callback(_close, session)
        stack.enter_context(Canceller(session, self._work))
        return session

    def _asker(self, source: DataSource, session: Session, table: str, where: str) -> Asker:
        types = self._params.types
        return Asker(source, session, Table(table, where), self._work.parameters, types)

    def _one(self, session: Session, bound: Bound, title: str) -> Any:
        """Return the only value of a query. Raises WorkFailed."""
        columns, rows = self._answer(session, bound, title, most=2)
        if len(columns) != 1 or len(rows) != 1:
            found = f"{len(columns)} columns" if len(columns) != 1 else "more than one"
            found = found if rows else "none"
            text = f"{title}: the query must give one row with one column, it gives {found}"
            raise WorkFailed(text, permanent=True)
        return rows[0][0]

    def _answer(
        self, session: Session, bound: Bound, title: str, most: int = 1
    ) -> tuple[Sequence[Column], list[tuple[Any, ...]]]:
        """Return columns and rows of a query."""
        self._work.require_wanted()
        self._work.progress(self._done, None, "queries", title)
        self.is_idle = False
        result = session.execute(bound.text, bound.values)
        try:
            rows = list(islice(iter(result), most)) if result.columns else []
        finally:
            result.close()
        self.is_idle = True
        self._done += 1
        return result.columns, rows

    def _failure(self, error: SqlFailed) -> WorkFailed:
        is_permanent = error.verdict is ErrorVerdict.PERMANENT
        if is_permanent or isinstance(error, StatementCancelled | StatementTimedOut):
            self.is_idle = True  # the server has answered
        # Nothing is changed: what may be none another time can be tried again.
        return WorkFailed(str(error), permanent=is_permanent)


def _close(session: Session) -> None:
    with suppress(Exception):  # what went wrong before is what people need to know
        session.close()
