"""Junk in rows that are only read: alert servers and the API set it aside and serve all else."""

import asyncio
from typing import ClassVar

import httpx

from tests.chaos.cluster.cluster import Cluster, NotWhole
from tests.chaos.cluster.queries import fetch
from tests.chaos.faults.fault import Fault, effects
from tests.chaos.judging.history import History
from tests.chaos.observer import View
from tests.chaos.workload.dags import PASSING
from tests.chaos.workload.rest import Api

_JUNK = ("not json", '{"a": {"b": [null]', "[" * 2000, "[1, 2]", '"text"', "17", "{}")
_WITHIN_S = 40.0
_LOOK_S = 0.2
_EVENTS = 3
# In a project that has a rule: what no rule is about is not looked into.
_INSERT = """INSERT INTO event (at, kind, project, workflow_instance_id, data)
    SELECT at, kind, 'default', %s, %s FROM event
    WHERE kind = 'instance.state' AND workflow_instance_id = %s ORDER BY id DESC LIMIT 1
    RETURNING id"""
_POSITION = "SELECT position FROM alert_job WHERE name = 'rules'"
_ASIDE = "FROM quarantine WHERE consumer = 'alerts' AND kind = 'event'"
# Pages about the run with junk, about all events, and of each kind of statistics.
_PAGES = (
    f"/instances?project={PASSING}&limit=200",
    "/instances?limit=200",
    "/insight/summary",
    "/insight/workflows",
    "/insight/failures",
    "/insight/tasks",
    "/quarantine",
    "/health",
)


class JunkForReaders(Fault):
    """Events that say nothing, and a run that is over with parameters that are none.

    The run is of the project that the checker leaves out; what else it finds must be right.
    """

    name = "junk-row-read"
    alone: ClassVar[bool] = True  # it needs API and database
    costs_workers = False
    _events: tuple[int, ...] = ()
    _aside = 0
    _run = 0

    async def begin(self, cluster: Cluster) -> None:
        url = cluster.database.url
        key = f"{self.name}-{self.dice.getrandbits(64):x}"
        async with Api(cluster.url, cluster.token) as api:
            history = History(api, url, cluster.site.marker, key)
            await history.make(1, 0)
        self._run = history.over[0]
        self.target = f"instance {self._run} and {_EVENTS} events of it"
        read = "SELECT parameters FROM workflow_instance WHERE id = %s"
        [(self._was,)] = await fetch(url, read, self._run)
        for junk in self.dice.sample(_JUNK, _EVENTS):
            [(event,)] = await fetch(url, _INSERT, self._run, junk, self._run)
            self._events += (event,)
        await self._write(cluster, self.dice.choice(_JUNK))

    async def hold(self, cluster: Cluster) -> None:
        await self._served(cluster)
        last = max(self._events)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _WITHIN_S
        while (await fetch(cluster.database.url, _POSITION))[0][0] < last:
            if loop.time() > deadline:
                raise NotWhole(f"alert servers do not read beyond event {last}, which is junk")
            await asyncio.sleep(_LOOK_S)
        aside = {item for (item,) in await fetch(cluster.database.url, f"SELECT item {_ASIDE}")}
        self._aside = sum(str(event) in aside for event in self._events)
        await self._served(cluster)

    async def heal(self, cluster: Cluster) -> None:
        url = cluster.database.url
        if self._run:
            await self._write(cluster, self._was)
        for event in self._events:
            await fetch(url, "DELETE FROM event WHERE id = %s RETURNING id", event)
            await fetch(url, f"DELETE {_ASIDE} AND item = %s RETURNING item", str(event))

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._aside} events were set aside, {len(_PAGES)} pages served"
        return self._aside > 0, f"{said}; {effects(self.before, after)}"

    async def _write(self, cluster: Cluster, text: str) -> None:
        query = "UPDATE workflow_instance SET parameters = %s WHERE id = %s RETURNING 1"
        await fetch(cluster.database.url, query, text, self._run)

    async def _served(self, cluster: Cluster) -> None:
        """Return when each page was served. Raises NotWhole: one is not."""
        headers = {"Authorization": f"Bearer {cluster.token}"}
        loop = asyncio.get_running_loop()
        async with httpx.AsyncClient(timeout=30.0, trust_env=False, headers=headers) as client:
            for page in _PAGES:
                deadline = loop.time() + _WITHIN_S
                while not (answer := await client.get(f"{cluster.url}/api/v1{page}")).is_success:
                    if loop.time() > deadline:
                        raise NotWhole(f"{page}: {answer.status_code} {answer.text:.300}")
                    await asyncio.sleep(_LOOK_S)
