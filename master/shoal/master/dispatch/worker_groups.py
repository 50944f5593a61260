"""Which worker groups a project may use, asked when a task is fetched.

A restriction that is new counts for every payload that is made a second later or after that. So
what a master has read is good for that long, and most payloads cost no statement.
"""

import asyncio
from collections.abc import Mapping

from shoal.core.access.grants import Restricted, no_such_group
from shoal.core.errors import ShoalError
from shoal.sql import Database

_GOOD_FOR_S = 1.0


class WorkerGroupNotAllowed(ShoalError):
    """A task is for a worker group that is restricted to other projects."""

    def __init__(self, project: str, group: str) -> None:
        self.project, self.group = project, group
        super().__init__(no_such_group(project, group))


class WorkerGroups:
    """The restrictions of worker groups, as one master knows them. One event loop."""

    def __init__(self, database: Database, good_for_s: float = _GOOD_FOR_S) -> None:
        self._database, self._good_for_s = database, good_for_s
        self._reading = asyncio.Lock()
        self._restricted: Mapping[str, frozenset[str]] = {}
        self._read_at: float | None = None

    async def require(self, project: str, group: str) -> None:
        """Return if tasks of a project may run there. Raises WorkerGroupNotAllowed, SqlError."""
        if not self._is_good():
            async with self._reading:
                if not self._is_good():
                    await self._read()
        allowed = self._restricted.get(group)
        if allowed is not None and project not in allowed:
            raise WorkerGroupNotAllowed(project, group)

    def _is_good(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self._read_at is not None and now - self._read_at < self._good_for_s

    async def _read(self) -> None:
        began = asyncio.get_running_loop().time()  # what is stored from now on may be missed
        async with self._database.unit_of_work(read_only=True) as uow:
            self._restricted = await uow.restrictions.all_of(Restricted.WORKER_GROUP)
        self._read_at = began
