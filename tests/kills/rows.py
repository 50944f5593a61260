"""What Shoal's database says of the runs: plain SQL, past the API and all proxies."""

import asyncio
from types import TracebackType
from typing import Any, Self

import psycopg


class Rows:
    """A connection of the suite's own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._connection.close()

    async def state(self, instance: int) -> str:
        """Return the state of a run."""
        [row] = await self._all("SELECT state FROM workflow_instance WHERE id = %s", instance)
        return str(row[0])

    async def partition(self, instance: int) -> int:
        """Return the partition of a run."""
        [row] = await self._all("SELECT partition FROM workflow_instance WHERE id = %s", instance)
        return int(row[0])

    async def attempts(self, instance: int) -> list[tuple[int, str, str]]:
        """Return number, state and reason of each attempt, in their order."""
        query = (
            "SELECT attempt, state, coalesce(reason, '') FROM task_instance"
            " WHERE workflow_instance_id = %s ORDER BY attempt"
        )
        return [(int(row[0]), str(row[1]), str(row[2])) for row in await self._all(query, instance)]

    async def _all(self, query: str, instance: int) -> list[tuple[Any, ...]]:
        async with self._lock:
            cursor = await self._connection.execute(query.encode(), (instance,))
            return await cursor.fetchall()
