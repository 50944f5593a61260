"""A project that asks for far more than its share."""

import asyncio
from contextlib import suppress

from tests.chaos.cluster.cluster import Cluster, NotWhole
from tests.chaos.cluster.queries import fetch
from tests.chaos.faults.fault import Fault, effects
from tests.chaos.judging.history import History
from tests.chaos.observer import View
from tests.chaos.workload.dags import PASSING
from tests.chaos.workload.rest import Api

_STARTS, _TOGETHER = 300, 20
_MOST_S = 150.0  # for the flood to be worked off
_LOOK_S = 0.5
_OTHERS = f"""SELECT count(*) FROM workflow_instance i JOIN workflow w ON w.id = i.workflow_id
    JOIN project p ON p.id = w.project_id WHERE p.name <> '{PASSING}'
    AND i.state NOT IN ('QUEUED', 'RUNNING', 'PAUSING', 'PAUSED', 'STOPPING') AND i.id > %s"""
_NEWEST = "SELECT coalesce(max(id), 0) FROM workflow_instance"


class Flood(Fault):
    """Hundreds of starts by one project: runs of the others must end meanwhile."""

    name = "flood-of-one-project"
    alone = True  # what waits behind the flood would be taken for an effect of another fault
    costs_workers = False

    async def begin(self, cluster: Cluster) -> None:
        self.target = PASSING
        url = cluster.database.url
        key = f"{self.name}-{self.dice.getrandbits(64):x}"
        async with Api(cluster.url, cluster.token) as api:
            history = History(api, url, cluster.site.marker, key)
            await history.make(1, 0)  # publishes the workflow
            [(newest,)] = await fetch(url, _NEWEST)
            begun_s = asyncio.get_running_loop().time()
            flood = asyncio.create_task(self._flood(api, key))
            try:
                while not flood.done():
                    if asyncio.get_running_loop().time() - begun_s > _MOST_S:
                        raise NotWhole(f"{_STARTS} runs are not over after {_MOST_S:g} s")
                    await asyncio.sleep(_LOOK_S)
                [(self._others,)] = await fetch(url, _OTHERS, newest)
            finally:
                flood.cancel()
                with suppress(asyncio.CancelledError):
                    await flood
        self._took_s = asyncio.get_running_loop().time() - begun_s
        if not self._others:
            raise NotWhole(f"no run of another project ended in the {self._took_s:.0f} s")

    async def _flood(self, api: Api, key: str) -> None:
        body = {"type": "START", "project": PASSING, "workflow": "passing"}
        room = asyncio.Semaphore(_TOGETHER)

        async def start(number: int) -> None:
            async with room:
                await api.outcome(await api.command(f"{key}-flood-{number}", body))

        await asyncio.gather(*(start(number) for number in range(_STARTS)))

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{_STARTS} starts in {self._took_s:.1f} s, {self._others} runs of others ended; "
        return self._others > 0, said + effects(self.before, after)
