"""What the SQL types ask of a database: a session, its results, and what its errors mean.

``drivers`` implements this for each kind of data source, with three functions beside it:

``connect(source, *, tag, attempt, log, read_only, statement_timeout_s) -> Session``
    settles what earlier attempts of the tag have left, then connects. ``log`` takes what the
    database says beside results (notices, warnings). Raises WorkFailed with advice.
``settle(source, *, tag, attempt) -> None``
    ends every statement and connection at the server that carries the tag, of this attempt and
    those before it. Returns when they are gone; raises WorkFailed if that cannot be made sure.
``classify(error) -> ErrorVerdict``
    says what an error of a driver means for the attempt.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class ErrorVerdict(StrEnum):
    """What an error of the database means for the attempt."""

    PERMANENT = "permanent"  # the same another time: syntax, permission, constraint
    RETRY = "retry"  # may be none another time: connection, deadlock, serialization, timeout
    # Lost during COMMIT, or in a statement that commits itself: it is unknown whether the changes
    # are there.
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True)
class Column:
    """One column of a result. ``type_name`` is what the database calls its type."""

    name: str
    type_name: str


class Result(Protocol):
    """What one statement returned. Iterating streams the rows of the current set, in bounded
    memory. Closing it early is allowed; the session can be used again after that.
    """

    columns: Sequence[Column]  # empty: the statement returns no rows
    row_count: int | None  # rows changed; None: unknown

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the current result set, once."""
        ...

    def next_set(self) -> bool:
        """Go on to the next result set of the same statement; return whether there is one."""
        ...

    def close(self) -> None:
        """Give up the rows that were not read."""
        ...


class Session(Protocol):
    """One connection of an attempt. The main thread alone uses it, but for ``cancel`` and
    ``terminate``. Everything raises errors of the driver; ``classify`` understands them.
    """

    #: Returns the text that stands for a value in a statement: of its number, from 0 and in the
    #: order of the statement, and the name of its type (``typed.ValueType``). If that begins
    #: with %, every other % of a statement that has values is written twice.
    placeholder: Callable[[int, str], str]

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        """Run one statement, its values bound. Without values the text is sent as it is."""
        ...

    def begin(self) -> None:
        """Begin a transaction. Without it each statement is committed by itself."""
        ...

    def commit(self) -> None:
        """Commit the transaction."""
        ...

    def rollback(self) -> None:
        """Roll the transaction back."""
        ...

    def quote(self, identifier: str) -> str:
        """Return a name as the database quotes it; ``a.b`` is schema and table."""
        ...

    def implicit_commit(self, statement: str) -> bool:
        """Return whether the database commits by itself around this statement."""
        ...

    def cancel(self) -> None:
        """Cancel the running statement in the database. For another thread."""
        ...

    def terminate(self) -> None:
        """End the connection at the server. For another thread."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
