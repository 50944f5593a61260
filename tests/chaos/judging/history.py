"""A family of runs made to be purged, in a project of its own that the checker leaves out.

What has gone can tell nobody that it went well. So these runs are short and write no ledger, and
``check`` says of them what can be said: what went has gone whole, and what is open stays.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any

from tests.chaos.cluster.queries import fetch
from tests.chaos.workload.dags import PASSING, passing
from tests.chaos.workload.rest import Api

_ENDED_S = 60.0  # for short runs to end
_LOOK_S = 0.2
_ORPHANS = """
    SELECT (SELECT count(*) FROM task_instance t WHERE NOT EXISTS
               (SELECT 1 FROM workflow_instance i WHERE i.id = t.workflow_instance_id))
         + (SELECT count(*) FROM event e WHERE e.workflow_instance_id IS NOT NULL AND NOT EXISTS
               (SELECT 1 FROM workflow_instance i WHERE i.id = e.workflow_instance_id))"""
_STATES = "SELECT id, state FROM workflow_instance WHERE id IN ({})"


class History:
    """Runs of one workflow: ``over`` have ended, ``open`` have not. ``key`` makes theirs."""

    def __init__(self, api: Api | None, database_url: str, marker: str, key: str) -> None:
        """``api`` None: only to look."""
        self._given, self._url = api, database_url
        self._marker, self._key = marker, key
        self.over: list[int] = []
        self.open: list[int] = []

    @property
    def _api(self) -> Api:
        assert self._given is not None
        return self._given

    async def make(self, over: int, open_: int) -> None:
        """Start runs, and wait until those that shall be over are. Raises TimeoutError."""
        await self._api.request("PUT", f"/projects/{PASSING}", json={})
        quick, slow = passing(self._marker)
        for definition in (quick, slow):
            path = f"/projects/{PASSING}/workflows/{definition['name']}"
            await self._api.request("PUT", path, json=definition)
        async with asyncio.timeout(_ENDED_S):
            self.over = await self._start(quick["name"], over)
            self.open = await self._start(slow["name"], open_)
            while set((await self._states(self.over)).values()) != {"SUCCEEDED"}:
                await asyncio.sleep(_LOOK_S)

    async def _start(self, workflow: str, count: int) -> list[int]:
        body = {"type": "START", "project": PASSING, "workflow": workflow}
        keys = [f"{self._key}-{workflow}-{number}" for number in range(count)]
        commands = [await self._api.command(key, body) for key in keys]
        return [int((await self._api.outcome(one))["result_instance_id"]) for one in commands]

    async def purge(self) -> int:
        """Ask for all that is over by now to go; return the request's id."""
        body = {"before": datetime.now(UTC).isoformat(), "project": PASSING}
        return int((await self._api.request("POST", "/purges", json=body))["id"])

    async def purged(self, purge: int, timeout_s: float) -> dict[str, Any]:
        """Return the request once it is carried out. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while True:
                found: dict[str, Any] = await self._api.request("GET", f"/purges/{purge}")
                if found["finished_at"] is not None:
                    return found
                await asyncio.sleep(_LOOK_S)

    async def check(self) -> str:
        """Return what is wrong after a purge, "" if nothing is."""
        left = await self._states(self.open)
        gone = [number for number in self.open if number not in left]
        if gone:
            return f"instances {gone} were purged although they were open"
        [(orphans,)] = await fetch(self._url, _ORPHANS)
        return f"{orphans} rows are left of instances that have gone" if orphans else ""

    async def gone(self) -> int:
        """Return how many of those that are over have gone."""
        return len(self.over) - len(await self._states(self.over))

    async def _states(self, instances: list[int]) -> dict[int, str]:
        holes = ", ".join(["%s"] * len(instances)) or "NULL"
        return dict(await fetch(self._url, _STATES.format(holes), *instances))
