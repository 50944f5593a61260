"""What calling a routine gives, for every database."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from shoal.worker.types.procedure.kind import Argument
from shoal.worker.types.procedure.routines import Routine
from shoal.worker.types.sql.session import Result, Session

# Takes one result set after the other, each read before the next comes.
TakeSet = Callable[[Result], None]


@dataclass
class Returned:
    """What a call has returned beside result sets: values by the names of outputs."""

    values: dict[str, Any] = field(default_factory=dict)


class CallDialect(Protocol):
    """How routines are looked up and called in one kind of database."""

    def find(self, session: Session, schema: str | None, name: str) -> list[Routine]:
        """Return the routines of a name that the session's user can see."""
        ...

    def call(
        self,
        session: Session,
        routine: Routine,
        arguments: dict[str, Argument],
        take: TakeSet,
    ) -> Returned:
        """Call a routine with arguments that fit."""
        ...


def rows_of(session: Session, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a query with values and return its rows."""
    result = session.execute(statement, values)
    try:
        return list(result)
    finally:
        result.close()


def sets_of(result: Result) -> Iterator[Result]:
    """Yield the result once for each of its sets that has columns; it is closed at the end."""
    try:
        while True:
            if result.columns:
                yield result
            if not result.next_set():
                return
    finally:
        result.close()
