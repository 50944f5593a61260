"""A real MariaDB server in a temporary folder (``tests/provision.sh`` installs its programs)."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from tests.support.database.postgresql import as_server_user

USER = "nobody"  # runs the server if we are root
_START_TIMEOUT_S = 200
_STOP_TIMEOUT_S = 60
_STARTED = "SELECT 1"
# What the tables of a new server are made by, in this order.
_SHARED = Path("/usr/share/mysql")
_TABLES = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")
_BEFORE = """create database mysql;
use mysql;
SET @auth_root_socket=NULL;
SET @skip_auth_anonymous=1;
"""
_SMALL = (
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--skip-name-resolve",
)


class MariadbMissing(Exception):
    """There are no programs to start a server from."""


@dataclass(frozen=True)
class MariadbServer:
    """A running server. ``socket`` lets in root, without a password; ``port`` is of TCP."""

    socket: Path
    port: int

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as root; return the rows of the last one."""
        connection = pymysql.connect(
            unix_socket=str(self.socket), user="root", autocommit=True, ssl_disabled=True
        )
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            connection.close()


@contextmanager
def temporary_server(port: int, options: Sequence[str] = ()) -> Iterator[MariadbServer]:
    """Run a server at this port of 127.0.0.1, all of it gone at the end.

    Raises MariadbMissing if its programs are not installed.
    """
    program = shutil.which("mariadbd", path="/usr/sbin:/usr/bin:/usr/libexec")
    scripts = [_SHARED / f"{name}.sql" for name in _TABLES]
    if program is None or not all(script.exists() for script in scripts):
        raise MariadbMissing("there is no MariaDB: run tests/provision.sh")
    # Short, for the name of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="shoal-my-", dir="/tmp"))
    data = folder / "data"
    data.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
        shutil.chown(data, USER)
    command = [program, "--no-defaults", f"--datadir={data}", *_SMALL]
    try:
        _make_tables(folder, command, scripts)
        with _running(folder, command, port, options) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_tables(folder: Path, command: Sequence[str], scripts: Sequence[Path]) -> None:
    text = _BEFORE + "".join(script.read_text(encoding="utf-8") for script in scripts)
    done = subprocess.run(
        as_server_user([*command, "--bootstrap"]),
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        timeout=_START_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise RuntimeError(f"MariaDB's tables were not made:\n{done.stderr}")


@contextmanager
def _running(
    folder: Path, command: Sequence[str], port: int, options: Sequence[str]
) -> Iterator[MariadbServer]:
    server = MariadbServer(folder / "socket", port)
    places = [f"--socket={server.socket}", f"--port={port}", "--bind-address=127.0.0.1"]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            as_server_user([*command, *places, *options], stop="TERM"),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        _wait_ready(process, server, log)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(process: subprocess.Popen[bytes], server: MariadbServer, log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(server.socket))  # PyMySQL would leave its own open
            server.run(_STARTED)
            return
        except (OSError, pymysql.err.OperationalError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"MariaDB did not start:\n{log.read_text()}") from error
        time.sleep(0.02)  # there is no event to wait for across processes
