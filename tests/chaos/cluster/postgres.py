"""A PostgreSQL server of the suite's own, which can crash and come back with its data."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import psycopg

from shoal.client.local.zookeeper import HOST
from tests.chaos.cluster.ports import lasting_port
from tests.support.database.postgresql import INITDB, USER, as_server_user, find_binaries, run_tool

DATABASE = "shoal"
READY_S = 60.0
_LOOK_S = 0.05
# A crash of the server alone loses nothing that the kernel has: committed is committed without
# fsync, but not without the write that synchronous_commit stands for.
_SETTINGS = ("fsync=off", "synchronous_commit=on", "full_page_writes=off", "max_connections=200")


class Postgres:
    """A server on a loopback port. Start and stop it in the main thread.

    Raises PostgresqlMissing if its programs are not installed.
    """

    def __init__(self) -> None:
        self._binaries = find_binaries()
        self.port = lasting_port()
        # Not below the suite's folder: the server runs as a user who may not enter that one.
        self._folder = Path(tempfile.mkdtemp(prefix="shoal-pg-", dir="/tmp"))
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
        try:
            if os.geteuid() == 0:
                shutil.chown(self._folder, USER)
            data = self._folder / "data"
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
        shutil.rmtree(self._folder, ignore_errors=True)

    async def start(self, database: str = DATABASE) -> None:
        """Start the server and return when it answers."""
        self._spawn()
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
        for setting in (*_SETTINGS, f"listen_addresses={HOST}", f"port={self.port}"):
            options += ["-c", setting]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                as_server_user([self._binaries / "postgres", *options]),
                cwd=self._folder,
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

    def processes(self) -> list[psutil.Process]:
        """Return the server's processes, the first one first; none if it does not run."""
        if not self.running or self._process is None:
            return []
        with suppress(psutil.Error):
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        return []

    def log_tail(self) -> str:
        return "\n".join((self._folder / "log").read_text(errors="replace").splitlines()[-30:])

    def _url(self, database: str) -> str:
        return f"postgresql://shoal@{HOST}:{self.port}/{database}"
