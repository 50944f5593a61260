"""What is stored may be what this version cannot show: then that row says so, and no other suffers.

Repositories find most of it (``shoal.sql.statements.rows``). The rest shows when the answer is
made: a priority that there is not, text in a column for numbers, a task that the definition does
not have.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from shoal.core.errors import ShoalError
from shoal.core.runs.quarantine import reason_of
from shoal.sql.errors import UnreadableRow
from shoal.sql.statements.rows import leave_out

T = TypeVar("T")
S = TypeVar("S")
_ILLEGIBLE = (ValueError, TypeError, LookupError, AttributeError)


@contextmanager
def legible(kind: str, key: object) -> Iterator[None]:
    """Raise UnreadableRow for a row of which the block cannot make an answer."""
    try:
        yield
    except ShoalError:
        raise
    except _ILLEGIBLE as error:
        raise UnreadableRow(kind, key, reason_of(error)) from error


def shown(
    kind: str, items: Iterable[S], make: Callable[[S], T], key: Callable[[S], object]
) -> list[T]:
    """Return what ``make`` makes of each item; one of which it can make nothing is left out."""
    found: list[T] = []
    for item in items:
        try:
            with legible(kind, key(item)):
                found.append(make(item))
        except UnreadableRow as error:
            leave_out(error)
    return found


def by_id(item: Any) -> object:
    """Return what most rows are named by."""
    return item.id


def by_name(item: Any) -> object:
    """Return what a project's things are named by."""
    return item.name
