"""Junk in the database's rows: what belongs to it is quarantined, all else goes on.

The rows are of a victim, a run made for it. The junk is repaired in the end, so the checker judges
the victim like every other run. What only readers see is of a run that the checker leaves out.
"""

import asyncio
import random
from typing import Any, ClassVar

import httpx

from tests.chaos.cluster.cluster import START_S, Cluster, NotWhole
from tests.chaos.cluster.queries import fetch
from tests.chaos.cluster.role import Role
from tests.chaos.faults.fault import Fault, effects
from tests.chaos.judging.history import History
from tests.chaos.observer import View
from tests.chaos.workload.dags import PASSING, victim
from tests.chaos.workload.rest import Api

_UNREADABLE = ("not json", '{"a": {"b": [null]', "[" * 2000)
_JUNK = (*_UNREADABLE, "[1, 2]", '"text"', "17")
_SPEC_JUNK = (*_JUNK, '{"name":"w","tasks":[{"name":"a","type":"SHELL"}],"of_a_newer_version":1}')
_READY_S = 60.0  # for the victim to come to where it is to be struck
_ASIDE_S = 40.0  # for a master to read the row
_RELEASED_S = 90.0  # two tries again, and a takeover
_BESIDE_S = 120.0  # for another run to end, and for a second try of the quarantined one
_LOOK_S = 0.2
_SERVED_S = 40.0  # for a page to be shown
_EVENTS = 3
# In a project that has a rule: what no rule is about is not looked into.
_INSERT = """INSERT INTO event (at, kind, project, workflow_instance_id, data)
    SELECT at, kind, 'default', %s, %s FROM event
    WHERE kind = 'instance.state' AND workflow_instance_id = %s ORDER BY id DESC LIMIT 1
    RETURNING id"""
_POSITION = "SELECT position FROM alert_job WHERE name = 'rules'"
_SKIPPED = "FROM quarantine WHERE consumer = 'alerts' AND kind = 'event'"
# Pages about the run with junk, about all events, and of each kind of statistics.
_PAGES = (
    f"/instances?project={PASSING}&limit=200",
    "/instances?limit=200",
    "/insight/summary",
    "/insight/workflows",
    "/insight/failures",
    "/insight/load",
    "/quarantine",
    "/health",
)


class _JunkRow(Fault):
    """``column`` of one row of ``table`` is overwritten, and its reader is made to read it."""

    alone: ClassVar[bool] = True  # it needs API and database, and kills a master
    costs_workers = False
    kind: ClassVar[str] = "instance"  # what is quarantined
    table: ClassVar[str]
    column: ClassVar[str]
    junk: ClassVar[tuple[str, ...]] = _JUNK

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self._was: str | None = None  # what stood there
        self._is_written = False
        self._told = ""  # why it was quarantined
        self._killed: Role | None = None
        self._key = f"{self.name}-{dice.getrandbits(64):x}"

    async def begin(self, cluster: Cluster) -> None:
        async with Api(cluster.url, cluster.token) as self._api:
            await self._make(cluster)
            row, item = await self.choose(cluster)
            self._row, self._item = row, item
            self.target = f"{self.table}.{self.column} of {self.kind} {item}"
            self._was = await self._read(cluster)
            self._is_written = True
            await self._write(cluster, self.dice.choice(self.junk))
            await self.show(cluster)
            self._told = await self._aside(cluster, _ASIDE_S, wanted=True)

    async def _make(self, cluster: Cluster) -> None:
        """Start the victim; return when its first task has ended and its second one runs."""
        definition = victim(self._key, cluster.site)
        await self._api.publish(definition)
        body = {"type": "START", "project": "default", "workflow": definition["name"]}
        command = await self._api.command(self._key, body)
        async with asyncio.timeout(_READY_S):
            self.instance = int((await self._api.outcome(command))["result_instance_id"])
            while not await self._rows(
                cluster,
                "SELECT 1 FROM task_instance WHERE workflow_instance_id = %s"
                " AND task = 'second' AND state = 'RUNNING'",
                self.instance,
            ):
                await asyncio.sleep(_LOOK_S)

    async def choose(self, cluster: Cluster) -> tuple[str, str]:
        """Return the row as a condition, and the id of what is to be quarantined."""
        return f"id = {self.instance}", str(self.instance)

    async def show(self, cluster: Cluster) -> None:
        """Let a master read it: the run's owner has it in memory, so that one dies."""
        query = (
            "SELECT p.owner FROM workflow_instance i JOIN partition p ON p.number = i.partition"
            " WHERE i.id = %s"
        )
        [(owner,)] = await self._rows(cluster, query, self.instance)
        pids = [m.pid for m in await cluster.observer.masters() if m.id == owner]
        for role in cluster.of("master"):
            if role.pid in pids:
                self._killed, role.held = role, True
                role.kill()

    async def heal(self, cluster: Cluster) -> None:
        try:
            if self._is_written:
                await self._write(cluster, self._was)
        finally:
            if self._killed is not None:
                self._killed.start()
                self._killed.held = False
        if self._killed is not None:
            # How long a process takes to start is the machine's figure, not the cluster's.
            await cluster.until_registered(self._killed, START_S)
        async with Api(cluster.url, cluster.token) as self._api:
            await self.release(cluster)
        if self._told and await self._aside(cluster, _RELEASED_S, wanted=False):
            raise NotWhole(f"{self.kind} {self._item} was repaired and is still quarantined")

    async def release(self, cluster: Cluster) -> None:
        """Have it tried again, as ``shoal recover`` does."""
        async with asyncio.timeout(_RELEASED_S):
            for number in range(1000):
                if not await self._quarantined(cluster):
                    return
                body = {"type": "RECOVER", "instance_id": self.instance}
                command = await self._api.command(f"{self._key}-{number}", body)
                if (await self._api.outcome(command))["state"] == "DONE":
                    return
                await asyncio.sleep(1.0)

    def bit(self, after: View) -> tuple[bool, str]:
        if not self._told:
            return False, "nothing was quarantined"
        return True, f"quarantined: {self._told!r:.100}; {effects(self.before, after)}"

    async def _read(self, cluster: Cluster) -> str | None:
        query = f"SELECT {self.column} FROM {self.table} WHERE {self._row}"
        [(text,)] = await self._rows(cluster, query)
        return None if text is None else str(text)

    async def _write(self, cluster: Cluster, text: str | None) -> None:
        query = f"UPDATE {self.table} SET {self.column} = %s WHERE {self._row}"
        await self._rows(cluster, f"{query} RETURNING 1", text)

    async def _aside(self, cluster: Cluster, within_s: float, *, wanted: bool) -> str:
        """Wait until the thing is quarantined, or is not; return the last reason."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while bool(told := await self._quarantined(cluster)) is not wanted:
            if loop.time() > deadline:
                break
            await asyncio.sleep(_LOOK_S)
        return told

    async def _quarantined(self, cluster: Cluster) -> str:
        query = "SELECT reason FROM quarantine WHERE kind = %s AND item = %s"
        found = await self._rows(cluster, query, self.kind, self._item)
        return str(found[0][0]) if found else ""

    async def _rows(self, cluster: Cluster, query: str, *values: Any) -> list[Any]:
        return await fetch(cluster.database.url, query, *values)


class JunkDefinition(_JunkRow):
    """Of a workflow with a run that is open."""

    name = "junk-row-definition"
    table, column = "workflow_version", "spec"
    junk = _SPEC_JUNK

    async def choose(self, cluster: Cluster) -> tuple[str, str]:
        query = "SELECT workflow_id FROM workflow_instance WHERE id = %s"
        [(workflow,)] = await self._rows(cluster, query, self.instance)
        return f"workflow_id = {workflow}", str(self.instance)


class JunkParameters(_JunkRow):
    """Of a run that is open."""

    name = "junk-row-instance"
    table, column = "workflow_instance", "parameters"


class StayQuarantined(JunkParameters):
    """The row is repaired late: the run is tried again and again, and others end meanwhile."""

    name = "junk-row-stays"
    _tries = 0
    _passed = 0

    async def hold(self, cluster: Cluster) -> None:
        if not self._told:
            return
        ended = "SELECT count(*) FROM workflow_instance WHERE finished_at IS NOT NULL"
        [(before,)] = await self._rows(cluster, ended)
        async with Api(cluster.url, cluster.token) as api:
            # Another run of the same workflow: only the row of the first one is damaged.
            body = {"type": "START", "project": "default", "workflow": self._key}
            command = await api.command(f"{self._key}-beside", body)
            beside = int((await api.outcome(command))["result_instance_id"])
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _BESIDE_S
        query = "SELECT state FROM workflow_instance WHERE id = %s"
        while (await self._rows(cluster, query, beside))[0][0] != "SUCCEEDED" or self._tries < 2:
            if loop.time() > deadline:
                raise NotWhole(f"{self._tries} tries of {self._item}; run {beside} has not ended")
            await asyncio.sleep(_LOOK_S)
            tries = "SELECT tries FROM quarantine WHERE kind = %s AND item = %s"
            found = await self._rows(cluster, tries, self.kind, self._item)
            self._tries = max(self._tries, *(count for (count,) in found), 0)
        [(after,)] = await self._rows(cluster, ended)
        self._passed = after - before

    def bit(self, after: View) -> tuple[bool, str]:
        has_bitten, said = super().bit(after)
        return has_bitten, f"{self._passed} other runs ended, {self._tries} tries; {said}"


class JunkOutputs(_JunkRow):
    """Of a task that has ended, in a run that has not."""

    name = "junk-row-outputs"
    table, column = "task_instance", "outputs"
    junk = _UNREADABLE  # what else it may be is checked only where it is used

    async def choose(self, cluster: Cluster) -> tuple[str, str]:
        query = "SELECT id FROM task_instance WHERE workflow_instance_id = %s AND task = 'first'"
        [(task,)] = await self._rows(cluster, query, self.instance)
        return f"id = {task}", str(self.instance)


class JunkCommand(_JunkRow):
    """Of a command that nobody has carried out: it is there with its junk from the beginning."""

    name = "junk-row-command"
    kind = "command"
    table, column = "command", "parameters"

    async def choose(self, cluster: Cluster) -> tuple[str, str]:
        """Copy the command that has started the victim."""
        query = """
            INSERT INTO command (type, partition, idempotency_key, workflow_id, version, parameters,
                priority, requested_by, state, created_at, logical_time, timezone)
            SELECT c.type, c.partition, c.idempotency_key || '-again', c.workflow_id, c.version, %s,
                c.priority, c.requested_by, 'PENDING', c.created_at, c.logical_time, c.timezone
            FROM command c JOIN workflow_instance i ON i.command_id = c.id WHERE i.id = %s
            RETURNING id"""
        [(command,)] = await self._rows(cluster, query, self.dice.choice(self.junk), self.instance)
        return f"id = {command}", str(command)

    async def _read(self, cluster: Cluster) -> str | None:
        """Return what the command that was copied has."""
        query = (
            "SELECT c.parameters FROM command c JOIN workflow_instance i ON i.command_id = c.id"
            " WHERE i.id = %s"
        )
        [(text,)] = await self._rows(cluster, query, self.instance)
        return str(text)

    async def show(self, cluster: Cluster) -> None:
        """Somebody's scan finds it."""

    async def release(self, cluster: Cluster) -> None:
        """What is repaired is tried again by itself."""


class JunkForReaders(Fault):
    """Events that say nothing, and a run that is over with parameters that are none.

    The run is of the project that the checker leaves out; what else it finds must be right.
    """

    name = "junk-row-read"
    alone: ClassVar[bool] = True  # it needs API and database
    costs_workers = False
    _events: tuple[int, ...] = ()
    _aside = 0
    _is_read = False  # by alert servers
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
        deadline = loop.time() + _SERVED_S
        while (await fetch(cluster.database.url, _POSITION))[0][0] < last:
            if loop.time() > deadline:
                raise NotWhole(f"alert servers do not read beyond event {last}, which is junk")
            await asyncio.sleep(_LOOK_S)
        aside = {item for (item,) in await fetch(cluster.database.url, f"SELECT item {_SKIPPED}")}
        self._is_read = True
        self._aside = sum(str(event) in aside for event in self._events)
        await self._served(cluster)

    async def heal(self, cluster: Cluster) -> None:
        url = cluster.database.url
        if self._run:
            await self._write(cluster, self._was)
        for event in self._events:
            await fetch(url, "DELETE FROM event WHERE id = %s RETURNING id", event)
            await fetch(url, f"DELETE {_SKIPPED} AND item = %s RETURNING item", str(event))

    def bit(self, after: View) -> tuple[bool, str]:
        # Most junk means nothing to any rule, so it is only read over.
        said = f"{len(self._events)} events read over, {self._aside} quarantined; "
        said += f"{len(_PAGES)} pages served"
        return self._is_read, f"{said}; {effects(self.before, after)}"

    async def _write(self, cluster: Cluster, text: str) -> None:
        query = "UPDATE workflow_instance SET parameters = %s WHERE id = %s RETURNING 1"
        await fetch(cluster.database.url, query, text, self._run)

    async def _served(self, cluster: Cluster) -> None:
        """Return when each page was served. Raises NotWhole: one is not."""
        headers = {"Authorization": f"Bearer {cluster.token}"}
        loop = asyncio.get_running_loop()
        async with httpx.AsyncClient(timeout=30.0, trust_env=False, headers=headers) as client:
            for page in _PAGES:
                deadline = loop.time() + _SERVED_S
                while not (answer := await client.get(f"{cluster.url}/api/v1{page}")).is_success:
                    if loop.time() > deadline:
                        raise NotWhole(f"{page}: {answer.status_code} {answer.text:.300}")
                    await asyncio.sleep(_LOOK_S)
