"""The cluster under test: ensemble, database, network, masters, workers, API, alert servers."""

import asyncio
import random
import subprocess
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx

from shoal.client.local.data_folder import ensure_identity, ensure_token
from shoal.client.local.zookeeper import HOST
from shoal.runtime.vault import create_key
from tests.chaos.cluster.ensemble import Ensemble
from tests.chaos.cluster.hosts import Hosts
from tests.chaos.cluster.links import Network
from tests.chaos.cluster.names import DATABASE, ZOOKEEPER, Names
from tests.chaos.cluster.ports import lasting_port
from tests.chaos.cluster.postgres import Postgres
from tests.chaos.cluster.role import Role, base_environment, still_alive
from tests.chaos.cluster.sandbox import Refused, SmallDisk
from tests.chaos.cluster.sink import Sink
from tests.chaos.cluster.sqlite import SqliteFile
from tests.chaos.observer import LOOK_S, NotVisible, Observer, View
from tests.chaos.workload.dags import Site
from tests.preload import ClockShift

MASTERS = WORKERS = 3
ALERT_SERVERS = 2
SLOTS = 4
START_S = 120.0
POSTGRESQL, SQLITE = DATABASES = ("postgresql", "sqlite")

T = TypeVar("T")
_DISK_MB, _DATABASE_DISK_MB = 48, 256
_LOOK_AFTER_S = 0.1  # how often ended roles are looked for


class NotWhole(Exception):
    """The cluster was not whole within its bound; says what was missing last."""


@dataclass(frozen=True)
class Shape:
    """How the cluster is set up."""

    session_timeout_s: float = 3.0
    database: str = POSTGRESQL  # or SQLITE
    masters: int = MASTERS
    workers: int = WORKERS
    network_refused: str = ""  # why roles have no hosts of their own, "" if they may
    # For the last worker and each server of ZooKeeper and PostgreSQL, so that they can be filled.
    small_disk: bool = True
    # Why roles know their servers by address, "" if they may by name: that mounts over /etc/hosts.
    names_refused: str = "the cluster was set up without names"
    worker_settings: tuple[str, ...] = ()  # further ones of all workers, NAME=VALUE


class Cluster:
    """Everything, started and stopped by ``async with`` in the main thread."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        self.folder, self.shape = folder, shape
        self.data, self.archive = folder / "data", folder / "archive"  # of logs
        self.roles: list[Role] = []
        self.disk: SmallDisk | None = None  # of the last worker
        self.database_disk: SmallDisk | None = None  # of the SQLite file
        self.disk_refused = ""  # why there is none
        self.names: Names | None = None  # by which roles know their servers
        self.names_refused = ""  # why they know them by address
        self.clocks: ClockShift | None = None  # of the roles
        self.clocks_refused = ""  # why they cannot be shifted
        self.token = ""
        self.site: Site  # of the workload's definitions, for faults that need runs of their own
        self.leftovers: list[str] = []  # processes that outlived their end, after the stop
        self._api_port = lasting_port()
        self._stack = AsyncExitStack()
        self.ensemble: Ensemble
        self.database: Postgres | SqliteFile
        self.hosts: Hosts
        self.network: Network
        self.sink: Sink  # of messages about alerts
        self.observer: Observer
        self._watching: asyncio.Task[None] | None = None

    @property
    def timeout_s(self) -> float:
        """The session timeout T."""
        return self.shape.session_timeout_s

    @property
    def postgres(self) -> Postgres:
        """The database server, for what SQLite does not have."""
        assert isinstance(self.database, Postgres)
        return self.database

    @property
    def url(self) -> str:
        """The API's."""
        return f"http://{HOST}:{self._api_port}"

    def of(self, kind: str) -> list[Role]:
        """Return the roles of a kind: master, worker, api, alert."""
        return [role for role in self.roles if role.kind == kind]

    def pick(self, kind: str, dice: random.Random) -> Role:
        """Return a role of the kind that nobody holds down, by chance; best one with work."""
        free = [role for role in self.of(kind) if not role.held]
        return dice.choice([role for role in free if role.tasks()] or free)

    # -- life ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.stop_roles()
        finally:
            await self._stack.aclose()
            for disk in (self.disk, self.database_disk):
                if disk is not None:
                    disk.unmount()
            if self.names is not None:
                self.names.unmount()
            self.disk = self.database_disk = self.names = None

    async def _start(self) -> None:
        self.data.mkdir(mode=0o700)
        (self.data / "logs").mkdir()
        self.token = ensure_token(self.data)
        ensure_identity(self.data / "tls")
        create_key(self.data / "secrets.key")
        self._mount()
        self._name()
        self._wind_clocks()
        enter = self._stack.enter_async_context
        small = self.shape.small_disk
        is_file = self.shape.database == SQLITE
        self.database = await enter(
            SqliteFile(self.data / "database") if is_file else Postgres(small_disk=small)
        )
        self.ensemble = await enter(Ensemble(self.folder, small_disks=small))
        self.hosts = self._stack.enter_context(Hosts(self.shape.network_refused))
        self.network = self._stack.enter_context(Network())
        self.sink = self._stack.enter_context(Sink())
        kinds = (("api", 1), ("master", self.shape.masters), ("alert", ALERT_SERVERS))
        for kind, count in kinds:
            self.roles += [self._role(kind, n) for n in range(1, count + 1)]
        self.roles += [self._role("worker", n) for n in range(1, self.shape.workers + 1)]
        for role in self.roles:
            role.start()
        self._watching = asyncio.create_task(self._watch())
        self.observer = await enter(Observer(self.ensemble.hosts, self.database.url))
        await self.until_whole(START_S)
        await self.observer.prepare()

    def _mount(self) -> None:
        if not self.shape.small_disk:
            return
        try:
            self.disk = SmallDisk(self.data / "workers" / f"worker-{self.shape.workers}", _DISK_MB)
            if self.shape.database == SQLITE:
                self.database_disk = SmallDisk(self.data / "database", _DATABASE_DISK_MB)
        except Refused as error:
            self.disk_refused = str(error)

    def _name(self) -> None:
        self.names_refused = self.shape.names_refused
        if not self.names_refused:
            try:
                self.names = Names(self.folder)
            except Refused as error:
                self.names_refused = str(error)

    def _wind_clocks(self) -> None:
        try:
            self.clocks = ClockShift(self.folder)
        except (OSError, subprocess.CalledProcessError) as error:
            self.clocks_refused = f"no library that shifts clocks: {error}"

    def _role(self, kind: str, number: int) -> Role:
        name = f"{kind}-{number}"
        networks = {"master": 1, "worker": 2}
        is_central = kind not in networks
        host = self.hosts.centre if is_central else self.hosts.add(networks[kind], number)
        servers = [(HOST, member.port) for member in self.ensemble.members]
        zookeeper = self.network.link(f"{name} to ZooKeeper", servers, host.centre)
        known_as = self._known_as(ZOOKEEPER, name, host.centre)
        database = None
        settings = {
            "SHOAL_ZOOKEEPER": ",".join(f"{known_as}:{port}" for port in zookeeper.ports),
            "SHOAL_SESSION_TIMEOUT_S": f"{self.timeout_s}",
            "SHOAL_LOG_FORMAT": "json",
            "SHOAL_LOGS_URL": str(self.archive),
        }
        arguments = [kind, "--data", str(self.data)]
        match kind:
            case "worker":
                arguments += ["--set", f"name={name}", "--set", f"slots={SLOTS}"]
                arguments += ["--set", "kill_grace_s=1", "--set", f"min_free_mb={_DISK_MB // 6}"]
                for setting in self.shape.worker_settings:
                    arguments += ["--set", setting]
            case _ if isinstance(self.database, SqliteFile):
                settings["SHOAL_DATABASE_URL"] = self.database.url
            case _:
                server = [(HOST, self.postgres.port)]
                database = self.network.link(f"{name} to the database", server, host.centre)
                known_as = self._known_as(DATABASE, name, host.centre)
                url = self.postgres.url_at(database.ports[0], known_as)
                settings["SHOAL_DATABASE_URL"] = url
        if kind == "master":  # so that history can go which is only seconds old
            arguments += ["--set", "keep_newest_instances=0"]
        if kind == "alert":
            arguments += ["--set", "http_allow=127.0.0.0/8", "--set", "poll_s=0.2"]
        else:
            arguments += ["--set", f"host={HOST if kind == 'api' else host.address}"]
        if kind == "api":
            arguments += ["--set", f"port={self._api_port}"]
        shifts = dict(self.clocks.environment) if self.clocks is not None else {}
        environment = base_environment() | settings | shifts
        log = self.data / "logs" / f"{name}.log"
        return Role(name, host, arguments, environment, log, zookeeper, database)

    def _known_as(self, service: str, role: str, address: str) -> str:
        """Return by what a role knows a service: a name if it can have one, else the address."""
        return self.names.add(service, role, address) if self.names is not None else address

    def stranger(self, path: str) -> Role:
        """Return a master, not started, with this database and another path in ZooKeeper."""
        master = self.of("master")[0]
        zookeeper = master.setting("SHOAL_ZOOKEEPER") + path
        return master.copy("stranger", SHOAL_ZOOKEEPER=zookeeper)

    async def _watch(self) -> None:
        """Start again what ends by itself, as a supervisor of real services does."""
        while True:
            for role in self.roles:
                role.look()
            await asyncio.sleep(_LOOK_AFTER_S)

    async def stop_roles(self) -> None:
        """Stop all roles in order, and make sure that nothing of them is left. Repeatable."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        everything = [process for role in self.roles for process in role.tree()]
        for kind in ("api", "alert", "worker", "master"):
            await asyncio.gather(*(asyncio.to_thread(role.stop) for role in self.of(kind)))
        for process in still_alive(everything):
            self.leftovers.append(f"process {process.pid} ({process.name()}) outlived its role")
            process.kill()
        self.roles = [role for role in self.roles if role.exits]

    # -- health --------------------------------------------------------------------------------

    async def until_whole(self, timeout_s: float) -> View:
        """Return when every role runs and serves, and masters hold everything. Raises NotWhole."""
        return await self._until(self._whole, timeout_s)

    async def until_taken_over(self, gone: Collection[int], timeout_s: float) -> None:
        """Return when masters other than the processes ``gone`` have all partitions stored."""

        async def taken() -> tuple[str, None]:
            rows = await self.observer.rows()
            alive = {role.pid for role in self.of("master") if role.running} - set(gone)
            ids = {member.id for member in await self.observer.masters() if member.pid in alive}
            missing = [number for number, (owner, _) in rows.items() if owner not in ids]
            return (f"{len(missing)} partitions are not taken over" if missing else ""), None

        await self._until(taken, timeout_s)

    async def until_registered(self, role: Role, timeout_s: float) -> None:
        """Return when the newest process of a master or worker is a member. Raises NotWhole."""

        async def registered() -> tuple[str, None]:
            known = role.pid in await self.observer.pids()
            return ("" if known else f"{role.name} is not registered"), None

        await self._until(registered, timeout_s)

    async def owns(self, master: Role) -> bool:
        """Whether a master has stored that some partition is its own; False if nobody can say."""
        try:
            ids = {m.id for m in await self.observer.masters() if m.pid == master.pid}
            rows = await self.observer.rows()
        except NotVisible:
            return False
        return any(owner in ids for owner, _ in rows.values())

    async def _whole(self) -> tuple[str, View]:
        down = [role.name for role in self.roles if not role.running]
        if down:
            return f"{', '.join(down)} not running", View()
        if mute := [w.name for w in self.of("worker") if len(w.supervisors()) < 2]:
            return f"{', '.join(mute)} without a launcher", View()
        view = await self.observer.look()
        masters = [role.pid for role in self.of("master")]
        missing = view.whole(masters, [role.pid for role in self.of("worker")])
        return missing or await self._api_trouble(), view

    async def _api_trouble(self) -> str:
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
                answer = await client.get(f"{self.url}/api/v1/health", headers=headers)
        except httpx.TransportError as error:
            return f"the API does not answer: {error!r}"
        return "" if answer.is_success else f"the API's health is {answer.status_code}"

    @staticmethod
    async def _until(look: Callable[[], Awaitable[tuple[str, T]]], timeout_s: float) -> T:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                missing, seen = await look()
            except NotVisible as error:
                missing = str(error)
            else:
                if not missing:
                    return seen
            if time.monotonic() > deadline:
                raise NotWhole(f"not whole within {timeout_s:g} s: {missing}")
            await asyncio.sleep(LOOK_S)
