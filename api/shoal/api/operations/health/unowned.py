"""Which partitions have no owner, and for how long: their runs stand still meanwhile."""

import asyncio
import time
from types import TracebackType
from typing import Self

import structlog

from shoal.coordination import background
from shoal.coordination.cluster.owners import Owners
from shoal.coordination.errors import CoordinationError

log = structlog.get_logger()

# In parts of the session timeout:
LOOK = 0.25  # between two looks
# Without an owner for so long: a change of hands takes less, even if a member dies meanwhile.
LONG = 1.0


class Unowned:
    """Poll the partitions' owners, for the life of the ``async with`` block."""

    def __init__(self, owners: Owners, partitions: int, session_timeout_s: float) -> None:
        self._owners, self._partitions = owners, partitions
        self._timeout_s = session_timeout_s
        self._since: dict[int, float] = {}  # partition -> when it was first seen without an owner
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = background.keep_running(self._run, "unowned partitions")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await background.stop(self._task)

    @property
    def long_s(self) -> float:
        """How long a partition has no owner before ``for_long`` names it."""
        return LONG * self._timeout_s

    def for_long(self) -> list[int]:
        """Return the partitions that have had no owner for ``long_s`` or more, sorted."""
        until = time.monotonic() - self.long_s
        return sorted(partition for partition, since in self._since.items() if since <= until)

    async def _run(self) -> None:
        while True:
            try:
                owned = (await self._owners.all_owners(self._partitions)).keys()
            except CoordinationError as error:
                log.debug("owners not read", error=str(error))  # /health says so, too
            else:
                now = time.monotonic()
                self._since = {
                    partition: self._since.get(partition, now)
                    for partition in range(self._partitions)
                    if partition not in owned
                }
            await asyncio.sleep(LOOK * self._timeout_s)
