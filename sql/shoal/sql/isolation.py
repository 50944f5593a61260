"""One bad item stops itself: items are worked with together, and where that fails apart.

A consumer of rows that others have written (events, messages, workflows) works with many in one
transaction. If that fails because of one of them, the others must neither wait for it nor be lost
with it. ``isolate`` finds it: it divides the items until the bad one is alone, hands that to
``skip``, and goes on behind it. All else is the caller's:

- ``deal`` works with some items, in order, in one transaction of its own, and stores there how far
  it has come.
- ``skip`` quarantines one item, and stores in the same transaction that it has been dealt with. So
  the position moves past an item exactly when its record is committed.

An outage (``is_outage``) is of no item: it is raised, and the whole is tried again later. So is
an error of ``skip``: a database that cannot take the record is not one to go on with.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from shoal.core.errors import ShoalError
from shoal.runtime.limits.memory_shortage import is_out_of_memory
from shoal.sql.errors import (
    DatabaseDamaged,
    Fenced,
    JobTaken,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
)

T = TypeVar("T")

# No item causes these, and no other item would be worked with.
_OF_ALL = (DatabaseDamaged, Fenced, JobTaken, SchemaMissing, SchemaTooNew, SchemaTooOld)


def is_outage(error: BaseException) -> bool:
    """Say whether an error is of the database, ZooKeeper or this process, not of an item."""
    is_retriable = isinstance(error, ShoalError) and error.retriable
    return is_retriable or isinstance(error, _OF_ALL) or is_out_of_memory(error)


async def isolate(
    items: Sequence[T],
    deal: Callable[[Sequence[T]], Awaitable[None]],
    skip: Callable[[T, Exception], Awaitable[None]],
) -> None:
    """Have all ``items`` dealt with, in order, or skipped one by one where that fails.

    ``deal`` gets one item or more. Raises outages, and what ``skip`` raises.
    """
    if not items:
        return
    try:
        await deal(items)
    except Exception as error:
        if is_outage(error):
            raise
        if len(items) == 1:
            await skip(items[0], error)
            return
    else:
        return
    half = len(items) // 2
    await isolate(items[:half], deal, skip)
    await isolate(items[half:], deal, skip)
