"""Others in the database: locks, long transactions, settings; and a server that stands still."""

import asyncio
import signal
from contextlib import AsyncExitStack, suppress
from typing import Any, ClassVar

import httpx
import psutil
import psycopg

from tests.chaos.cluster.cluster import Cluster, NotWhole
from tests.chaos.cluster.queries import fetch
from tests.chaos.cluster.role import signal_all
from tests.chaos.faults.fault import SERVER_ONLY, Fault, effects
from tests.chaos.observer import View

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
_UNREPLICATED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
_LOOK_S = 0.1
SHOWN_S = 12.0  # for the API to say that nothing is stored: 10 s are promised


async def is_ready(cluster: Cluster) -> bool:
    """Whether the API can work; also True if it does not answer."""
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with httpx.AsyncClient(timeout=20.0, trust_env=False, headers=headers) as client:
        with suppress(httpx.HTTPError):
            ready = await client.get(f"{cluster.url}/api/v1/health/ready")
            return ready.status_code != httpx.codes.SERVICE_UNAVAILABLE
    return True


class LockRows(Fault):
    """Somebody's transaction holds locks that masters need: of one table, or of all partitions."""

    name = "locks-database"
    hurts = frozenset({"database"})
    databases = SERVER_ONLY
    alone: ClassVar[bool] = True  # nothing can be looked at meanwhile
    costs_workers = False
    _waited = 0

    async def begin(self, cluster: Cluster) -> None:
        statement = self.dice.choice(
            (
                "LOCK TABLE task_instance IN ACCESS EXCLUSIVE MODE",
                "LOCK TABLE command IN SHARE MODE",
                "LOCK TABLE event IN SHARE MODE",
                "SELECT 1 FROM partition FOR UPDATE",
                "SELECT 1 FROM workflow_instance WHERE finished_at IS NULL FOR UPDATE",
            )
        )
        self.target = statement
        async with AsyncExitStack() as stack:
            url = cluster.database.url
            connection = await stack.enter_async_context(await psycopg.AsyncConnection.connect(url))
            await connection.execute(statement.encode())
            loop = asyncio.get_running_loop()
            ends_s = loop.time() + self.dice.uniform(1.0, 3.0) * cluster.timeout_s
            while loop.time() < ends_s:
                [(waiting,)] = await fetch(url, _WAITING)
                self._waited = max(self._waited, waiting)
                await asyncio.sleep(_LOOK_S)
            await connection.rollback()

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._waited} sessions waited at once; {effects(self.before, after)}"
        return self._waited > 0, said


class LongTransaction(Fault):
    """A transaction that took an event's id commits nothing for long: later events come first."""

    name = "long-transaction-database"
    hurts = frozenset({"database"})
    databases = SERVER_ONLY
    costs_workers = False
    _passed = 0

    async def begin(self, cluster: Cluster) -> None:
        self.target = "an id of event"
        url = cluster.database.url
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            taken = await self._one(
                connection, "SELECT nextval(pg_get_serial_sequence('event', 'id'))"
            )
            await connection.execute("SELECT pg_current_xact_id()")  # it may have written
            await asyncio.sleep(self.dice.uniform(16.0, 25.0))  # past the patience of readers
            newest = "SELECT coalesce(max(id), 0) FROM event"
            [(found,)] = await fetch(url, newest)
            self._passed = found - taken
            await connection.rollback()

    @staticmethod
    async def _one(connection: psycopg.AsyncConnection[Any], statement: str) -> int:
        row = await (await connection.execute(statement.encode())).fetchone()
        assert row is not None
        return int(row[0])

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._passed} later events committed before; {effects(self.before, after)}"
        return self._passed > 0, said


class FreezeDatabase(Fault):
    """Every process of the server stands still, as with a hung disk or a hung standby.

    Connections stay open, and the kernel goes on accepting new ones; nothing is answered.
    """

    name = "freeze-database"
    hurts = frozenset({"database"})
    databases = SERVER_ONLY
    alone: ClassVar[bool] = True  # nothing can be looked at meanwhile
    costs_workers = False

    async def begin(self, cluster: Cluster) -> None:
        self.target = "postgresql"
        # From the top, so that no process is forked unnoticed.
        self._frozen: list[psutil.Process] = []
        while new := [p for p in cluster.postgres.processes() if p not in self._frozen]:
            signal_all(new, signal.SIGSTOP)
            self._frozen += new

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 4.0))

    async def heal(self, cluster: Cluster) -> None:
        signal_all(self._frozen, signal.SIGCONT)

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{len(self._frozen)} processes stood still; {effects(self.before, after)}"
        return len(self._frozen) > 1, said


class MoveDatabase(Fault):
    """Somebody renames the database; the server is there, and knows none of that name."""

    name = "moved-database"
    hurts = frozenset({"database"})
    databases = SERVER_ONLY
    alone: ClassVar[bool] = True  # nothing can be looked at meanwhile
    costs_workers = False
    _ended = 0

    async def begin(self, cluster: Cluster) -> None:
        self.target = "postgresql"
        self._ended = await cluster.postgres.move()

    async def hold(self, cluster: Cluster) -> None:
        await self.for_timeouts(cluster, self.dice.uniform(1.0, 5.0))

    async def heal(self, cluster: Cluster) -> None:
        await cluster.postgres.move_back()

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._ended} sessions ended; {effects(self.before, after)}"
        return self._ended > 0, said


class _Setting(Fault):
    """Somebody changes a setting of the running server and takes the change back later."""

    hurts = frozenset({"database"})
    databases = SERVER_ONLY
    costs_workers = False
    setting: ClassVar[str]
    value: ClassVar[str]

    async def begin(self, cluster: Cluster) -> None:
        self.target = f"{self.setting} = {self.value}"
        await cluster.postgres.configure(self.setting, self.value)

    async def heal(self, cluster: Cluster) -> None:
        await cluster.postgres.configure(self.setting, None)


class HangStandby(_Setting):
    """Commits wait for a standby that is gone: each is on disk, and no client hears of it.

    Reads are answered meanwhile, and a session that is asked about says that it is at work.
    """

    name = "hung-standby-database"
    setting, value = "synchronous_standby_names", "absent_standby"
    alone: ClassVar[bool] = True  # a fault that has to store something could not begin
    _waited = 0

    async def hold(self, cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + self.dice.uniform(1.0, 5.0) * cluster.timeout_s
        while loop.time() < ends_s:
            [(waiting,)] = await fetch(cluster.database.url, _UNREPLICATED)
            self._waited = max(self._waited, waiting)
            await asyncio.sleep(_LOOK_S)

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"{self._waited} commits waited at once; {effects(self.before, after)}"
        return self._waited > 0, said


class ReadOnlyDatabase(_Setting):
    """The server answers every query and stores nothing, as during a switchover."""

    name = "read-only-database"
    setting, value = "default_transaction_read_only", "on"
    alone: ClassVar[bool] = True  # a fault that has to store something could not begin
    _shown = ""

    async def hold(self, cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        ends_s = begun_s + SHOWN_S + self.dice.uniform(0.0, 2.0) * cluster.timeout_s
        while loop.time() < ends_s:
            if not self._shown and not await is_ready(cluster):
                self._shown = f"not ready after {loop.time() - begun_s:.1f} s"
            await asyncio.sleep(_LOOK_S)
        if not self._shown:
            raise NotWhole(f"the API is ready although nothing was stored for {SHOWN_S:g} s")

    def bit(self, after: View) -> tuple[bool, str]:
        return bool(self._shown), f"{self._shown}; {effects(self.before, after)}"
