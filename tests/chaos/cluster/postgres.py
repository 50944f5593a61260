"""A PostgreSQL server of the suite's own, which can crash and come back with its data."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import psycopg

from shoal.client.local.zookeeper import HOST
from tests.chaos.cluster.machine import Machine
from tests.chaos.cluster.ports import lasting_port
from tests.support.database.postgresql import INITDB, USER, as_server_user, find_binaries, run_tool

DATABASE = "shoal"
_MOVED = "shoal_moved"
READY_S = 60.0
_LOOK_S = 0.05
DISK_MB = 512
# A crash of the server alone loses nothing that the kernel has: committed is committed without
# fsync, but not without the write that synchronous_commit stands for.
_SETTINGS = ("synchronous_commit=on", "full_page_writes=off", "max_connections=200")
_SMALL = ("max_wal_size=96MB", "min_wal_size=32MB")


class Postgres:
    """A server on a loopback port. Start and stop it in the main thread.

    Raises PostgresqlMissing if its programs are not installed.
    """

    def __init__(self, *, small_disk: bool = False) -> None:
        self._binaries = find_binaries()
        self.port = lasting_port()
        # Not below the suite's folder: the server runs as a user who may not enter that one.
        self._folder = Path(tempfile.mkdtemp(prefix="shoal-pg-", dir="/tmp"))
        data = self._folder / "data"
        self.machine = Machine(self._folder, data, DISK_MB if small_disk else 0)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Shoal's database, without any proxy."""
        return self.url_at(self.port)

    def url_at(self, port: int, host: str = HOST) -> str:
        """Return the URL of Shoal's database through a proxy on ``port``."""
        return f"postgresql://shoal@{host}:{port}/{DATABASE}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def __aenter__(self) -> Self:
        data = self._folder / "data"
        try:
            if os.geteuid() == 0:
                shutil.chown(self._folder, USER)
                if data.exists():
                    shutil.chown(data, USER)
            run_tool(self._folder, [self._binaries / "initdb", *INITDB, "-D", data])
            await self.start("postgres")
            with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {DATABASE}")
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
        self.crash()
        self.machine.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def start(self, database: str = DATABASE) -> None:
        """Start the server and return when it answers."""
        self._spawn()
        await self._answers(database)

    async def _answers(self, database: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + READY_S
        while True:
            try:
                connection = await psycopg.AsyncConnection.connect(
                    self._url(database), connect_timeout=5
                )
                await connection.close()
                return
            except psycopg.OperationalError as error:
                if not self.running or loop.time() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start:\n{self.log_tail()}") from error
            await asyncio.sleep(_LOOK_S)

    def _spawn(self) -> None:
        options: list[str | Path] = ["-D", self._folder / "data", "-k", self._folder]
        # A sync that is preloaded costs nothing as long as it is not told to.
        fsync = f"fsync={'on' if self.machine.sync is not None else 'off'}"
        for setting in (
            *_SETTINGS,
            *_SMALL,
            fsync,
            f"listen_addresses={HOST}",
            f"port={self.port}",
        ):
            options += ["-c", setting]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                as_server_user([self._binaries / "postgres", *options]),
                cwd=self._folder,
                env=self.machine.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def crash(self) -> None:
        """Stop as ``pg_ctl stop -m immediate`` does: no clean shutdown, recovery at the start."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGQUIT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    async def configure(self, setting: str, value: str | None) -> None:
        """Change a setting of the running server, in the words of SQL; None: as it was."""
        what = f"RESET {setting}" if value is None else f"SET {setting} = {value}"
        connect = psycopg.AsyncConnection.connect(self.url, autocommit=True)
        async with await connect as connection:
            await connection.execute(f"ALTER SYSTEM {what}".encode())
            await connection.execute("SELECT pg_reload_conf()")

    async def move(self) -> int:
        """Rename Shoal's database, as a restore does that puts another one in its place.

        Returns how many sessions were ended for it. Until ``move_back`` nothing connects.
        """
        async with await self._administer() as connection:
            # Else those who connect again at once keep it from being renamed.
            await connection.execute(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS false".encode())
            ended = await connection.execute(
                "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE datname = %s",
                [DATABASE],
            )
            await connection.execute(f"ALTER DATABASE {DATABASE} RENAME TO {_MOVED}".encode())
            return ended.rowcount

    async def move_back(self) -> None:
        """Give Shoal's database its name back, and let it be used."""
        async with await self._administer() as connection:
            found = await connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [_MOVED]
            )
            if await found.fetchone():
                await connection.execute(f"ALTER DATABASE {_MOVED} RENAME TO {DATABASE}".encode())
            await connection.execute(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS true".encode())
        await self._answers(DATABASE)

    def _administer(self) -> Awaitable[psycopg.AsyncConnection[Any]]:
        return psycopg.AsyncConnection.connect(self._url("postgres"), autocommit=True)

    def processes(self) -> list[psutil.Process]:
        """Return the server's processes, the first one first; none if it does not run."""
        if not self.running or self._process is None:
            return []
        with suppress(psutil.Error):
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        return []

    async def revive(self) -> None:
        """Return when the server answers: it is started if it has ended."""
        if not self.running:
            self._process = None
            self._spawn()
        await self._answers(DATABASE)

    def log_size(self) -> int:
        """Return how many bytes its log has."""
        return (self._folder / "log").stat().st_size

    def said(self, words: bytes, since: int) -> int:
        """Return how often its log has ``words`` after the first ``since`` bytes."""
        return (self._folder / "log").read_bytes()[since:].count(words)

    def log_tail(self) -> str:
        return "\n".join((self._folder / "log").read_text(errors="replace").splitlines()[-30:])

    def _url(self, database: str) -> str:
        return f"postgresql://shoal@{HOST}:{self.port}/{database}"
