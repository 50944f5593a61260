"""The work of a PROCEDURE task, in the process of its attempt.

The routine is looked up, called in one transaction unless it commits by itself, and what it returns
is made into outputs before the commit, so that what cannot be an output is not committed either.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from types import ModuleType
from typing import cast

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.procedure import mariadb, postgresql
from shoal.worker.types.procedure.calls import CallDialect
from shoal.worker.types.procedure.kind import KINDS, Committer, ProcedureParams, Sets
from shoal.worker.types.procedure.routines import Routine, chosen, split_name
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.cancellation import Canceller
from shoal.worker.types.sql.drivers.failures import StatementCancelled, StatementTimedOut
from shoal.worker.types.sql.results.collectors import Collector, Nothing, check_outputs, rows_into
from shoal.worker.types.sql.results.values import as_text
from shoal.worker.types.sql.session import ErrorVerdict, Result, Session
from shoal.worker.types.sql.sql import OnMore
from shoal.worker.types.sql.verdicts import NOT_AGAIN

_DIALECTS: Mapping[str, ModuleType] = {
    "postgresql": postgresql,
    "mariadb": mariadb,
    "mysql": mariadb,
}


def run(work: Work[ProcedureParams]) -> None:
    """Run the task. Raises WorkFailed, Cancelled."""
    params = work.params
    source = work.data_source(params.data_source)
    if source.kind not in KINDS:
        text = f"data source {source.name!r}: PROCEDURE cannot use the kind {source.kind!r}"
        raise WorkFailed(text, permanent=True)
    session = drivers.connect(
        source,
        tag=work.tag,
        attempt=work.attempt,
        log=work.log,
        read_only=False,
        statement_timeout_s=params.statement_timeout,
    )
    calling = _Calling(work, session, cast(CallDialect, _DIALECTS[source.kind]))
    try:
        with Canceller(session, work):
            calling.run()
    finally:
        with suppress(Exception):  # what went wrong before is what people need to know
            session.close()
        if calling.is_idle:
            work.settled()


def settle(work: Work[ProcedureParams]) -> None:
    """End what the attempt has left running in the database. Raises WorkFailed."""
    source = work.data_source(work.params.data_source)
    drivers.settle(source, tag=work.tag, attempt=work.attempt)
    work.settled()


class _Calling:
    """Calls the routine on a session."""

    def __init__(self, work: Work[ProcedureParams], session: Session, dialect: CallDialect) -> None:
        self._work, self._params = work, work.params
        self._session, self._dialect = session, dialect
        self._sets: list[Mapping[str, str]] = []
        self.is_idle = True  # nothing runs at the server, for sure

    def run(self) -> None:
        """Call it and set the outputs. Raises WorkFailed, Cancelled."""
        in_transaction = self._params.transaction is Committer.TASK
        try:
            routine = self._look_up()
            self._work.require_wanted()
            self.is_idle = False
            if in_transaction:
                self._session.begin()
            else:
                self._note_commit()
            outputs = self._called(routine)
            check_outputs(outputs)
            if in_transaction:
                self._note_commit()
                self._session.commit()
            self.is_idle = True
        except Exception as error:
            self._undo()
            if self._work.is_cancelled:
                self.is_idle = self.is_idle or isinstance(error, StatementCancelled)
                raise
            raise self._failure(error) from error
        self._work.output(**outputs)

    def _look_up(self) -> Routine:
        schema, name, types = split_name(self._params.name)
        candidates = self._dialect.find(self._session, schema, name)
        routine = chosen(self._params.name, candidates, self._params.arguments, types)
        self._work.log(f"calling {routine}")
        return routine

    def _called(self, routine: Routine) -> dict[str, str]:
        began = time.monotonic()
        arguments = dict(self._params.arguments)
        returned = self._dialect.call(self._session, routine, arguments, self._take)
        self._work.log(f"    returned after {time.monotonic() - began:.3f} s")
        outputs = {name: as_text(value) for name, value in returned.values.items()}
        for number, found in enumerate(self._sets, 1):
            suffix = "" if number == 1 else f"_{number}"
            named = {f"{name}{suffix}": value for name, value in found.items()}
            if both := outputs.keys() & named.keys():
                text = f"a parameter and a result set are both called {min(both)}; `result: none`"
                raise WorkFailed(f"{text} leaves the sets out", permanent=True)
            outputs |= named
        return outputs

    def _take(self, result: Result) -> None:
        collector: Collector = Nothing()
        if self._params.result is Sets.ROWS:
            truncates = self._params.on_more is OnMore.TRUNCATE
            collector = rows_into(self._params.max_rows, truncates=truncates)
        collector.start(result.columns)
        count = 0
        for row in result:
            count += 1
            if not collector.add(row):
                break
        self._sets.append(collector.finish())
        self._work.log(f"    a result set, {count} rows")

    def _note_commit(self) -> None:
        """From now on something may be committed that is not to be done twice."""
        if not self._params.idempotent:
            self._work.not_repeatable(f"it is unknown whether it was committed: {NOT_AGAIN}")

    def _undo(self) -> None:
        try:
            self._session.rollback()
        except Exception as error:  # noqa: BLE001 - the first failure is what people need to know
            self._work.log(f"    could not roll back: {error}")

    def _failure(self, error: Exception) -> WorkFailed:
        verdict = drivers.classify(error)
        if isinstance(error, StatementTimedOut) or verdict is ErrorVerdict.PERMANENT:
            self.is_idle = True  # the server has answered
        text = f"{self._params.name}: {error}"
        if self._params.idempotent and verdict is not ErrorVerdict.PERMANENT:
            return WorkFailed(text)
        is_own = self._params.transaction is Committer.OWN and not self.is_idle
        if verdict is ErrorVerdict.RETRY and is_own:
            text += (
                "; the procedure may have committed a part, so the task is not tried again; write "
                "`idempotent: true` if to run it twice does no harm"
            )
            return WorkFailed(text, permanent=True)
        return WorkFailed(text, permanent=verdict is not ErrorVerdict.RETRY)
