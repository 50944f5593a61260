"""Statements that go to a PostgreSQL server together, and whose answers come back together.

A round trip costs client, server and kernel more than most of our statements do. In libpq's
pipeline mode the server carries out one statement after the other without waiting to be asked
for the next; after one that fails it skips the rest, up to the end of the pipeline.
"""

from collections.abc import Sequence
from itertools import count

from psycopg import generators
from psycopg.abc import Buffer, PQGen
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

# The text, with ``$1`` and so on, and the values in PostgreSQL's text form.
Statement = tuple[str, Sequence[Buffer | None]]


class Pipeline:
    """Sends statements on one connection; the server prepares each when it first comes."""

    def __init__(self, pgconn: PGconn) -> None:
        self._pgconn = pgconn
        self._names: dict[str, bytes] = {}  # of what the server has prepared, by its text
        self._numbers = count()

    def exchange(self, statements: Sequence[Statement]) -> PQGen[list[PGresult]]:
        """Carry on from wait to wait; return the answer to each statement, errors among them."""
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        sent: list[str | None] = []  # None: a statement; otherwise what is to be prepared
        for text, values in statements:
            if (name := self._names.get(text)) is None:
                # Not before BEGIN, where the server would take a snapshot for it.
                self._names[text] = name = b"shoal_%d" % next(self._numbers)
                pgconn.send_prepare(name, text.encode())
                sent.append(text)
            pgconn.send_query_prepared(name, values)
            sent.append(None)
        pgconn.pipeline_sync()
        yield from generators.send(pgconn)
        answers = yield from self._answers(sent)
        pgconn.exit_pipeline_mode()
        return answers

    def _answers(self, sent: Sequence[str | None]) -> PQGen[list[PGresult]]:
        answers: list[PGresult] = []
        refused: PGresult | None = None  # what was to be prepared, so its statement is skipped
        for text in sent:
            [answer] = yield from generators.fetch_many(self._pgconn)
            if text is None:
                answers.append(refused or answer)
                refused = None
            elif answer.status != ExecStatus.COMMAND_OK:
                del self._names[text]
                refused = answer
        yield from generators.fetch_many(self._pgconn)  # the end of the pipeline
        return answers
