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

LOOK_S = 2.5
LONG_S = 10.0  # without an owner: a change of hands takes less


class Unowned:
    """Poll the partitions' owners, for the life of the ``async with`` block."""

    def __init__(self, owners: Owners, partitions: int, *, look_s: float = LOOK_S) -> None:
        self._owners, self._partitions, self._look_s = owners, partitions, look_s
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

    def for_long(self, long_s: float = LONG_S) -> list[int]:
        """Return the partitions that have had no owner for ``long_s`` and more, sorted."""
        until = time.monotonic() - long_s
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
            await asyncio.sleep(self._look_s)
