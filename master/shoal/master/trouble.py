"""What goes wrong in one loop of a master as a whole.

What is wrong with one run or row is set aside (``quarantine.py``). What is left is repeated: no
error ends a master that another try may get over.
"""

import asyncio
import traceback

import structlog

from shoal.core.errors import ShoalError
from shoal.sql.errors import DatabaseDamaged, SchemaMissing, SchemaTooNew
from shoal.sql.statements.reading import reason_of

log = structlog.get_logger()

_MOST_CALLS = 10  # of a trace
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 10.0
# Nobody's row brings these about, and no repetition gets over them.
_FINAL = (SchemaMissing, SchemaTooNew, DatabaseDamaged)


def trace_of(error: BaseException) -> str:
    """Return the last calls that led to an error, as text.

    Not left to the renderer of the log: with all their variables it would take seconds of the
    event loop for one error, and show what no log should.
    """
    return "".join(traceback.format_exception(error, limit=-_MOST_CALLS))


class Trouble:
    """Tells of the errors of one loop, and lets it wait longer from one to the next."""

    def __init__(self, loop: str) -> None:
        self._loop = loop
        self._times = 0  # in a row
        self._told = ""  # the last one whose trace was logged

    def over(self) -> None:
        """The loop has worked."""
        self._times = 0

    async def met(self, error: Exception) -> None:
        """Tell of an error, and wait. Raises ``error`` if the master cannot work at all."""
        if isinstance(error, _FINAL):
            raise error
        reason = reason_of(error)
        is_known = reason == self._told or (isinstance(error, ShoalError) and error.retriable)
        self._told = reason
        log.warning(
            "not done; trying again",
            loop=self._loop,
            error=reason,
            times=self._times + 1,
            trace=None if is_known else trace_of(error),
        )
        pause_s = min(_FIRST_PAUSE_S * 2.0 ** min(self._times, 20), _LONGEST_PAUSE_S)
        self._times += 1
        await asyncio.sleep(pause_s)
