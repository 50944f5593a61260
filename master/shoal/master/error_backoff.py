"""What a master does about errors that end one turn of a loop.

An error of one run or row quarantines that one (``engine/quarantine.py``). All others are retried
after a pause: no error ends a master that another try may get over.
"""

import asyncio
import traceback

import structlog

from shoal.core.errors import ShoalError
from shoal.core.runs.quarantine import reason_of
from shoal.sql.errors import DatabaseDamaged, SchemaMissing, SchemaTooNew, SchemaTooOld

log = structlog.get_logger()

_MOST_CALLS = 10  # of a trace
# Short at first, as most errors pass; a database that is back is noticed within ten seconds.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 10.0
# No row causes these, and no retry gets over them.
_FINAL = (SchemaMissing, SchemaTooNew, SchemaTooOld, DatabaseDamaged)


def trace_of(error: BaseException) -> str:
    """Return the last calls that led to an error, as text.

    Not left to the renderer of the log: with all their variables it would take seconds of the
    event loop for one error, and show what no log should.
    """
    return "".join(traceback.format_exception(error, limit=-_MOST_CALLS))


class ErrorBackoff:
    """Logs the errors of one loop, with a pause after each that grows while they go on."""

    def __init__(self, loop: str) -> None:
        self._loop = loop
        self._times = 0  # in a row
        self._logged = ""  # the last error whose trace was logged

    def succeeded(self) -> None:
        """Begin with the shortest pause again."""
        self._times = 0

    async def failed(self, error: Exception) -> None:
        """Log an error, and pause. Raises ``error`` if the master cannot work at all."""
        if isinstance(error, _FINAL):
            raise error
        reason = reason_of(error)
        is_known = reason == self._logged or (isinstance(error, ShoalError) and error.retriable)
        self._logged = reason
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
