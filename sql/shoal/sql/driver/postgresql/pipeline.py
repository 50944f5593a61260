"""Statements that go to a PostgreSQL server together, and whose answers come back together.

A round trip costs client, server and kernel more than most of our statements do. In libpq's
pipeline mode the server carries out one statement after the other without waiting to be asked
for the next; after one that fails it skips the rest, up to the end of the pipeline.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from psycopg import generators
from psycopg.abc import Buffer, PQGen
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

# Of statements that are made where they are executed: one is prepared when it comes for the sixth
# time, and so many stay so. A server's process keeps some 45 KiB for each.
_EXECUTIONS_BEFORE = 5
_MOST_OCCASIONAL = 100


class PipelineStatement(NamedTuple):
    """One statement with its values."""

    text: str  # with ``$1`` and so on
    values: Sequence[Buffer | None] = ()  # in PostgreSQL's text form
    types: tuple[int, ...] = ()  # of the values, as OIDs; empty: the server finds them
    is_held: bool = True  # by a module, so it is prepared at once and for good


_Key = tuple[str, tuple[int, ...]]
_Forget = Callable[[], object]


@dataclass(slots=True)
class _Occasional:
    """A statement that no module holds."""

    executions: int = 0
    name: bytes = b""  # b"": the server has not kept it


class Pipeline:
    """Sends statements on one connection; all that are prepared there are prepared here."""

    def __init__(self, pgconn: PGconn) -> None:
        self._pgconn = pgconn
        self._names: dict[str, bytes] = {}  # of what the server has prepared, by its text
        self._occasional: OrderedDict[_Key, _Occasional] = (
            OrderedDict()
        )  # least recently used first
        self._numbers = count()

    def exchange(self, statements: Sequence[PipelineStatement]) -> PQGen[list[PGresult]]:
        """Carry on from wait to wait; return the answer to each statement, errors among them."""
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        sent: list[_Forget | None] = []  # None: a statement; else: if it was refused
        for statement in statements:
            if statement.is_held:
                name = self._held(statement, sent)
            else:
                name = self._unheld(statement, sent)
            pgconn.send_query_prepared(name, statement.values)
            sent.append(None)
        pgconn.pipeline_sync()
        yield from generators.send(pgconn)
        answers = yield from self._answers(sent)
        pgconn.exit_pipeline_mode()
        return answers

    def _held(self, statement: PipelineStatement, sent: list[_Forget | None]) -> bytes:
        """Return the name of a statement; have it prepared when it first comes."""
        text = statement.text
        if (name := self._names.get(text)) is None:
            # Not before BEGIN, where the server would take a snapshot for it.
            self._names[text] = name = b"shoal_%d" % next(self._numbers)
            self._pgconn.send_prepare(name, text.encode())
            sent.append(lambda: self._names.pop(text))
        return name

    def _unheld(self, statement: PipelineStatement, sent: list[_Forget | None]) -> bytes:
        """Return the name of a statement, which is none unless it comes again and again."""
        key = (statement.text, statement.types)
        known = self._occasional.setdefault(key, _Occasional())
        self._occasional.move_to_end(key)
        if len(self._occasional) > _MOST_OCCASIONAL:
            _, oldest = self._occasional.popitem(last=False)
            if oldest.name:
                self._pgconn.send_query_params(b"DEALLOCATE " + oldest.name, None)
                sent.append(_nothing)
        known.executions += 1
        if not known.name:
            if known.executions > _EXECUTIONS_BEFORE:
                known.name = b"shoal_%d" % next(self._numbers)
            self._pgconn.send_prepare(known.name, statement.text.encode(), statement.types)
            sent.append(lambda: self._occasional.pop(key, None))
        return known.name

    def _answers(self, sent: Sequence[_Forget | None]) -> PQGen[list[PGresult]]:
        answers: list[PGresult] = []
        refused: PGresult | None = None  # what was to be prepared, so its statement is skipped
        for forget in sent:
            [answer] = yield from generators.fetch_many(self._pgconn)
            if forget is None:
                answers.append(refused or answer)
                refused = None
            elif answer.status != ExecStatus.COMMAND_OK:
                forget()
                refused = answer
        yield from generators.fetch_many(self._pgconn)  # the end of the pipeline
        return answers


def _nothing() -> None:
    """A statement that the server could not forget stays there."""
