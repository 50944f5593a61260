"""Fixtures: a real PostgreSQL server for the whole test run, a fresh database for each test.

``SHOAL_TEST_POSTGRESQL_URL`` names a server to use (its user may create databases). Without it,
a server is started from the binaries that Debian installs (``tests/provision.sh`` gets them).
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.support.programs import lacking

URL_VARIABLE = "SHOAL_TEST_POSTGRESQL_URL"
_DEBIAN = Path("/usr/lib/postgresql")
# Nothing that tests store has to survive a power cut; what benchmarks store has to.
DURABLE = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "max_connections=200")
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=100")
# A copy of a database is some 300 files, which cost a disk five times the processor time.
_MEMORY = Path("/dev/shm")
_LEAST_MEMORY = 1 << 30  # bytes that are free there
_SMALL = ("max_wal_size=128MB", "min_wal_size=32MB")
# Its transactions would hold back what readers of events may see, at moments of its own choice.
_STEADY = ("autovacuum=off",)
INITDB = ("-U", "shoal", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
PORT = 5432
USER = "nobody"  # runs the server if we are root, as which it refuses to run
_START_TIMEOUT_S = 100
_STOP_TIMEOUT_S = 60


class PostgresqlMissing(Exception):
    """Neither a server to use nor binaries to start one."""


@dataclass(frozen=True)
class PostgresqlServer:
    """A running server. ``url`` names a database from which others can be created."""

    url: str
    copies_files: bool = False  # for copies of databases: cheap where files are in memory

    def url_of(self, database: str) -> str:
        """Return the URL of another database of this server."""
        base, _, query = self.url.partition("?")
        return f"{base.rpartition('/')[0]}/{database}" + (f"?{query}" if query else "")

    def create(self, database: str, template: str | None = None) -> str:
        """Create a database, as a copy of ``template`` if given; return its URL."""
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database))
        if template is not None:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        if self.copies_files:
            statement += sql.SQL(" STRATEGY file_copy")
        self._run(statement)
        return self.url_of(database)

    def drop(self, database: str) -> None:
        """Drop a database and end the connections to it."""
        self._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database)))

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """The server; started when the first test asks for it. Skips (in CI: fails) without one."""
    try:
        with _given_server() as server:
            yield server
    except PostgresqlMissing as error:
        lacking(error)


@pytest.fixture
def postgresql_url(postgresql_server: PostgresqlServer) -> Iterator[str]:
    """The URL of an empty database that only this test uses."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield postgresql_server.create(name)
    postgresql_server.drop(name)


def has_server() -> bool:
    """Return whether there is a server to use, or programs to start one."""
    if os.environ.get(URL_VARIABLE):
        return True
    try:
        find_binaries()
    except PostgresqlMissing:
        return False
    return True


@contextmanager
def _given_server() -> Iterator[PostgresqlServer]:
    if given := os.environ.get(URL_VARIABLE):
        yield PostgresqlServer(given)
        return
    with temporary_server((*_FAST, *_STEADY), in_memory=True) as server:
        yield server


@contextmanager
def temporary_server(
    settings: Sequence[str], port: int = PORT, *, in_memory: bool = False
) -> Iterator[PostgresqlServer]:
    """Run a server with these settings (``name=value``), all of it gone at the end.

    ``port``: of its socket, and of TCP if the settings have it listen there. ``in_memory``: its
    files are in memory if there is a place for them. Raises PostgresqlMissing if its programs are
    not installed.
    """
    binaries = find_binaries()
    in_memory = in_memory and _has_memory()
    if in_memory:
        settings = (*_SMALL, *settings)
    place = _MEMORY if in_memory else "/tmp"
    with (
        _initialised(binaries, place) as folder,
        _running(binaries, folder, settings, port) as url,
    ):
        # The version is that of Debian's folder: 15 was the first that has a choice.
        copies_files = in_memory and float(binaries.parent.name) >= 15
        yield PostgresqlServer(url, copies_files)


@contextmanager
def _initialised(binaries: Path, place: Path | str = "/tmp") -> Iterator[Path]:
    """Yield a folder in ``place`` with an empty cluster in ``data``; it is gone at the end."""
    # Short, for the name of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="shoal-pg-", dir=place))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        run_tool(folder, [binaries / "initdb", *INITDB, "-D", folder / "data"])
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_memory() -> bool:
    """Return whether files can be kept in memory; containers have little room there."""
    try:
        return shutil.disk_usage(_MEMORY).free >= _LEAST_MEMORY
    except OSError:
        return False


class RestartableServer:
    """A server of a test's own, at one address, that goes down and comes back with its data."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._folder = folder
        self._start = partial(_running, binaries, folder, _FAST, PORT)
        self._running = ExitStack()
        self.url = self.start()

    def start(self) -> str:
        """Start the server and return its URL when it answers."""
        self.url = self._running.enter_context(self._start())
        return self.url

    def stop(self) -> None:
        """End all connections and the server."""
        self._running.close()

    def keep(self) -> None:
        """Copy the data of the stopped server, as a replica has them that falls behind."""
        _copy(self._folder / "data", self._folder / "kept")

    def fall_back(self) -> None:
        """Let the stopped server have the data that were kept: commits since then are lost."""
        shutil.rmtree(self._folder / "data")
        _copy(self._folder / "kept", self._folder / "data")


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", source, target], check=True, timeout=_STOP_TIMEOUT_S)


@contextmanager
def restartable_server() -> Iterator[RestartableServer]:
    """Run a server that the test may stop and start. Raises PostgresqlMissing."""
    binaries = find_binaries()
    with _initialised(binaries) as folder:
        server = RestartableServer(binaries, folder)
        try:
            yield server
        finally:
            server.stop()


def find_binaries() -> Path:
    """Return the folder of the newest installed server's programs."""
    found = [path.parent for path in _DEBIAN.glob("*/bin/initdb")]
    if not found:
        raise PostgresqlMissing(
            f"there is no PostgreSQL: run tests/provision.sh, or name a server in {URL_VARIABLE}"
        )
    return max(found, key=lambda path: float(path.parent.name))


def as_server_user(command: Sequence[str | Path], stop: str = "INT") -> list[str]:
    """Return the command so that it is not root, and ends in order if this process is killed.

    ``stop``: the signal at which it does.
    """
    switch = [f"--reuid={USER}", "--regid=nogroup", "--clear-groups"]
    return [
        "setpriv",
        *(switch if os.geteuid() == 0 else []),
        f"--pdeathsig={stop}",
        "--",
        *map(str, command),
    ]


def run_tool(folder: Path, command: Sequence[str | Path]) -> None:
    done = subprocess.run(
        as_server_user(command),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_START_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


@contextmanager
def _running(binaries: Path, folder: Path, settings: Sequence[str], port: int) -> Iterator[str]:
    """Run the server below ``folder``, with a socket there; yield its URL by that socket."""
    options: list[str | Path] = ["-D", folder / "data", "-k", folder, "-p", str(port)]
    options += ["-c", "listen_addresses="]
    for setting in settings:
        options += ["-c", setting]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            as_server_user([binaries / "postgres", *options]),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        url = f"postgresql://shoal@/postgres?host={folder}"
        if port != PORT:
            url += f"&port={port}"
        _wait_ready(process, url, log)
        yield url
    finally:
        process.send_signal(signal.SIGINT)  # ends connections, then itself
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()


def _wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            psycopg.connect(url, connect_timeout=30).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from error
        time.sleep(0.02)  # there is no event to wait for across processes
