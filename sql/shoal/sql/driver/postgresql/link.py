"""One connection to PostgreSQL, from transaction to transaction.

Nothing is sent before there is something to wait for: BEGIN and what is only demanded go with
the first statement, and all statements of a ``change`` together. Statements have one way to the
server, ``_send``: those that modules hold, and those that SQLAlchemy has translated where they are
made, which come by its cursor (``cursor.py``).
"""

import asyncio
import select
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar, cast

from psycopg import Error
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from sqlalchemy import Connection as SyncConnection
from sqlalchemy import Dialect
from sqlalchemy.dialects.postgresql.psycopg import dialect_async
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from shoal.sql.driver.connection import MOST_SHORT_ROWS, Changes, Judge, Length, batched
from shoal.sql.driver.patience import Patience
from shoal.sql.driver.postgresql.pipeline import PipelineStatement
from shoal.sql.driver.postgresql.quick_connection import QuickConnection
from shoal.sql.driver.prepared import Values, notify, notify_of_commit, prepared
from shoal.sql.driver.queries import PreparedQuery, Query, prepared_query
from shoal.sql.driver.translation import FOREIGN, makes_session_useless
from shoal.sql.errors import StatementFailed

T = TypeVar("T")
_Demand = tuple[PreparedQuery, PipelineStatement, Judge]

_DIALECT = cast(Callable[..., Dialect], dialect_async)(paramstyle="numeric_dollar")
# A connection that was used within this time is asked for a sign of life only if there is cause.
_TRUSTED_S = 5.0


class PostgresqlLink:
    """A connection that ``release`` takes when its transaction has ended."""

    dialect = "postgresql"

    def __init__(
        self,
        connection: AsyncConnection,
        release: Callable[["PostgresqlLink"], Awaitable[None]],
        patience: Patience,
    ) -> None:
        assert connection.sync_connection is not None, "it is started"
        self._connection = connection
        self._sync = connection.sync_connection
        self._driver = cast(QuickConnection, self._sync.connection.driver_connection)
        self._pgconn = self._driver.pgconn
        # SQLAlchemy is in one transaction for good, as far as it knows: ours begin and end here.
        self._driver.carry = self._send
        self._release = release
        self._begin: PipelineStatement | None = PipelineStatement("BEGIN")
        self._demands: list[_Demand] = []
        self._used_s = time.monotonic()
        self.is_useless = False  # the server has said what no later transaction can get past
        self._limits_s = {
            Length.SHORT: patience.short_s,
            Length.UNKNOWN: patience.query_s,
            Length.LONG: patience.long_s,
        }
        self._ear = select.poll()
        self._ear.register(self._pgconn.socket, select.POLLIN)

    # -- between transactions ----------------------------------------------------------------

    async def is_alive(self) -> bool:
        """Whether neither a restart of the server nor a firewall has ended the connection."""
        has_spoken = self._ear.poll(0)  # unasked: its farewell, as a rule
        if not has_spoken and time.monotonic() - self._used_s < _TRUSTED_S:
            return True
        return await self.answers()

    async def answers(self) -> bool:
        """Ask the server for a sign of life; return whether it came."""
        try:
            [answer] = await self._answers([PipelineStatement("SELECT 1")])
            self._checked(answer)
        except FOREIGN:
            return False
        return True

    def give_up(self) -> None:
        """End all waits for an answer: connections as old as this one have gone."""
        self._driver.give_up("the database connection is as old as one that was lost")

    async def disconnect(self) -> None:
        """Close the connection, whatever state it is in."""
        await self._connection.invalidate()
        await self._connection.close()

    # -- the transaction ---------------------------------------------------------------------

    def begin(self, statement: str) -> None:
        """Begin, as soon as there is something to be done; "": each statement is by itself."""
        self._begin = PipelineStatement(statement) if statement else None

    async def run(self, work: Callable[[SyncConnection], T], length: Length) -> T:
        """Return what ``work`` makes of the connection; the event loop goes on meanwhile."""
        self._driver.limit_s = self._limits_s[length]
        try:
            return await self._connection.run_sync(work)
        finally:
            self._driver.limit_s = self._limits_s[Length.SHORT]

    async def demand(self, query: Query, values: Values, judge: Judge) -> None:
        """Ask a query with the next statement; ``judge`` its rows before anything follows."""
        asked = prepared_query(query, _DIALECT)
        parameters = asked.parameters(values)
        notify(self._sync, asked.text, parameters)
        statement = PipelineStatement(asked.text, self._driver.converter.dumped(parameters))
        self._demands.append((asked, statement, judge))

    async def fetch(self, query: Query, values: Values) -> list[Any]:
        """Return the rows of a query as named tuples."""
        asked = prepared_query(query, _DIALECT)
        parameters = asked.parameters(values)
        notify(self._sync, asked.text, parameters)
        statement = PipelineStatement(asked.text, self._driver.converter.dumped(parameters))
        [answer] = await self._send([statement])
        return self._rows(asked, answer)

    async def change(self, changes: Changes) -> list[int]:
        """Make changes one after the other; return how many rows each has changed."""
        answers = iter(await self._send(self._statements(changes)))
        return [sum(next(answers).command_tuples or 0 for _ in values) for _, values in changes]

    def _statements(self, changes: Changes) -> Iterator[PipelineStatement]:
        """Yield a statement for each row of values, translated when its turn comes."""
        for change, values in changes:
            made = prepared(change, tuple(values[0]), _DIALECT)
            notify(self._sync, made.text, values, len(values) > 1)
            for some in batched(values, MOST_SHORT_ROWS):
                for row in made.rows(some):
                    yield PipelineStatement(made.text, self._driver.converter.dumped(row))

    async def commit(self) -> None:
        """End the transaction; its changes are durable when this returns."""
        if self._demands:
            await self._send([])
        self._driver.is_slow = True
        try:
            if self._pgconn.transaction_status != TransactionStatus.IDLE:
                notify_of_commit(self._sync)
                [answer] = await self._answers([PipelineStatement("COMMIT")])
                if self._checked(answer).command_status != b"COMMIT":
                    raise StatementFailed("a statement had failed: nothing was committed")
        finally:
            self._driver.is_slow = False

    async def close(self) -> None:
        """Roll back what was not committed and give the connection back."""
        self._demands.clear()
        if self.is_idle:
            await self._end()
        else:
            # Cancelling the caller must not leave the transaction open.
            await asyncio.shield(self._roll_back())

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open and nothing under way; False on a lost connection."""
        return (
            self._pgconn.transaction_status == TransactionStatus.IDLE
            and self._pgconn.pipeline_status == PipelineStatus.OFF
        )

    async def _roll_back(self) -> None:
        try:
            await self._answers([PipelineStatement("ROLLBACK")])
        except FOREIGN:
            pass  # it is not idle, so it is closed, and that ends the transaction
        finally:
            await self._end()

    async def _end(self) -> None:
        self._used_s = time.monotonic()
        await self._release(self)

    # -- statements --------------------------------------------------------------------------

    def _rows(self, asked: PreparedQuery, answer: PGresult) -> list[Any]:
        return asked.rows(self._driver.converter.rows(answer))

    async def _send(self, statements: Iterable[PipelineStatement]) -> list[PGresult]:
        """Carry out what waits and then ``statements``; return the answers to these.

        Between parts of many others have their turn.
        """
        demands, self._demands = self._demands, []
        ahead = [statement for _, statement, _ in demands]
        if self._begin is not None and self.is_idle:
            ahead.insert(0, self._begin)
        answers: list[PGresult] = []
        for together in batched(chain(ahead, statements), MOST_SHORT_ROWS):
            answers += await self._answers(together)
        came = map(self._checked, answers)  # the first error is the reason of all others
        for _ in range(len(ahead) - len(demands)):
            next(came)
        for asked, _, judge in demands:
            judge(self._rows(asked, next(came)))
        return list(came)

    async def _answers(self, statements: Sequence[PipelineStatement]) -> list[PGresult]:
        """Return an answer to each statement, or to each until the connection was lost."""
        try:
            return await self._driver.exchange_all(statements)
        except Error as error:
            raise _foreign(error) from error

    def _checked(self, answer: PGresult) -> PGresult:
        """Return an answer that is not an error."""
        try:
            return self._driver.checked(answer)
        except Error as error:
            self.is_useless = self.is_useless or makes_session_useless(error)
            raise _foreign(error) from error


def _foreign(error: Error) -> Exception:
    """Return the driver's error as SQLAlchemy would have raised it."""
    return DBAPIError.instance(None, None, error, Error, hide_parameters=True, dialect=_DIALECT)
