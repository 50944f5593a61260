"""A real ZooKeeper server on loopback, from the jars that PySpark ships.

The server is durable: it writes every change to its log before it answers, so it may be killed
at any moment and finds its data again. PySpark is located, not imported.

Files below ``data_dir``: ``data/`` (snapshots and transaction logs), ``zookeeper.cfg`` and
``log4j2.properties`` (written anew at each start), ``zookeeper.log`` (rolled at 5 MB, 3 kept)
and ``zookeeper.out`` (what the Java runtime itself says).
"""

import asyncio
import base64
import hashlib
import importlib.util
import itertools
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import structlog

from shoal.client.errors import JarsNotFound, PortTaken, ServerFailed
from shoal.client.local.java import Java
from shoal.core.errors import ShoalError

log = structlog.get_logger()

HOST = "127.0.0.1"
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# Not ZooKeeperServerMain: that one ignores the autopurge settings.

# All that a single server loads. The whole jars folder would work, but takes 0.2 s longer and
# twice the memory.
JARS = (
    "zookeeper",
    "zookeeper-jute",
    "metrics-core",
    "snappy-java",
    "slf4j-api",
    "log4j-slf4j2-impl",
    "log4j-api",
    "log4j-core",
)
# Small and quick to start: one compiler level, one collector thread, memory returned when idle.
# Nothing here may change how data is stored: digest.enabled=false, for one, would make the server
# refuse the folders of all clusters that there are.
JVM_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=32m",
    "-XX:MinHeapFreeRatio=20",
    "-XX:MaxHeapFreeRatio=40",
    "-Xms16m",
    "-Xss512k",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dlog4j2.configurationFile=log4j2.properties",
    "-Dlog4j2.disableJmx=true",
    "-Dzookeeper.jmx.log4j.disable=true",
    # A request passes through fewer threads: the selector's own does the reading and writing.
    "-Dzookeeper.nio.numSelectorThreads=1",
    "-Dzookeeper.nio.numWorkerThreads=0",
)
LOG_CONFIG = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = zookeeper.log
appender.file.filePattern = zookeeper.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %-5p %c{1} [%t] %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 5MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""
# Runs in the child before Java: has the kernel kill it when the starting thread ends, makes
# sure the parent is not gone already, and becomes the given program (same process id).
DIE_WITH_PARENT = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent ended first")
os.execv(sys.argv[2], sys.argv[2:])
"""

# The most it may take: enough for a million waiting tasks (0.75 kB each). An idle server stays
# at some 80 MB all the same.
HEAP_MB = 1024
PROBE_TIMEOUT_S = 0.25  # a server that is still loading takes the question and never answers
PROBE_INTERVAL_S = 0.02
TAIL_LINES = 15
START_S = 60.0
MOST_CONNECTIONS = 1000
ADMINISTRATOR = "super"  # ZooKeeper's name for it
CHOICE = range(15_000, 30_000)  # ports; Linux gives out those from 32768 by itself
_choices = itertools.cycle(random.sample(CHOICE, len(CHOICE)))


class ZooKeeperServer:
    """One server process. Synchronous, not thread-safe.

    It listens on loopback only and accepts session timeouts between two ticks and one minute.
    On Linux it cannot outlive its parent: the kernel kills it when the *thread* that called
    ``start`` ends, so call that from the main thread or one that lives as long as the server
    is wanted (not from a worker of a short-lived thread pool).

    With a ``password`` the server refuses clients that do not show one, and the whole tree is
    closed to all but the user "shoal" with this one, whenever the server has started. Without
    a password every client may do everything.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int,
        java: Java,
        *,
        heap_mb: int = HEAP_MB,
        tick_ms: int = 500,
        password: str = "",
    ) -> None:
        self._password = password
        self._jars: Sequence[str] = JARS
        self._closing: threading.Thread | None = None
        self.data_dir, self.port, self.java = data_dir.absolute(), port, java
        self.heap_mb, self.tick_ms = heap_mb, tick_ms
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0  # bytes of zookeeper.log that earlier starts wrote

    @property
    def address(self) -> str:
        """The connection string for clients, "127.0.0.1:port"."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process id while it runs, else None."""
        return self._process.pid if self.running and self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and return at once. Raises JarsNotFound, PortTaken."""
        if self.running:
            return
        jars = os.pathsep.join(map(str, find_jars(self._jars)))
        require_free_port(HOST, self.port, "ZooKeeper")
        (self.data_dir / "data").mkdir(parents=True, exist_ok=True)
        self.data_dir.chmod(0o700)  # logs and snapshots hold what the access lists protect
        _write_private(self.data_dir / "zookeeper.cfg", self._config())
        (self.data_dir / "log4j2.properties").write_text(LOG_CONFIG, encoding="ascii")
        self._log_start = self._log_size()
        command = [str(self.java.executable), f"-Xmx{self.heap_mb}m", *JVM_FLAGS]
        command += ["-cp", jars, MAIN_CLASS, "zookeeper.cfg"]
        with (self.data_dir / "zookeeper.out").open("wb") as out:
            self._process = subprocess.Popen(
                die_with_parent(command),
                # All paths in the configuration are relative to this folder, so no character
                # in this path has to survive properties files and Java's file encodings.
                cwd=self.data_dir,
                env={**self._variables(), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the parent, which stops us in order
            )
        log.debug("zookeeper started", pid=self._process.pid, address=self.address)
        if self._password:
            # The next start may come at once, and does not wait for this server.
            self._closing = threading.Thread(target=self._close_tree, name="closing", daemon=True)
            self._closing.start()

    def _close_tree(self) -> None:
        # Not before it is needed: `shoal doctor` has no use for kazoo.
        from shoal.coordination.cluster.access_control import close_tree

        try:
            self._answers(START_S)
            asyncio.run(
                close_tree(
                    self.address,
                    f"digest:shoal:{self._password}",
                    f"digest:{ADMINISTRATOR}:{self._password}",
                )
            )
        except ShoalError as error:
            log.error("ZooKeeper's tree is not closed to others", error=str(error))

    def wait_ready(self, timeout_s: float = 30.0) -> None:
        """Return when the server answers, and its tree is closed if it has a password.

        Raises ServerFailed with the end of its log.
        """
        self._answers(timeout_s)
        if self._closing is not None:
            self._closing.join(timeout_s)
            if self._closing.is_alive():
                raise self._failed(f"could not be closed to others within {timeout_s:g} s")

    def _answers(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while self.running:
            if b"Mode: " in four_letter_word(HOST, self.port, "srvr") and self.running:
                return
            if time.monotonic() >= deadline:
                raise self._failed(f"did not answer on {self.address} within {timeout_s:g} s")
            time.sleep(PROBE_INTERVAL_S)  # there is no event to wait for across processes
        status = self._process.returncode if self._process else None
        raise self._failed("was not started" if status is None else f"ended with status {status}")

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the process: SIGTERM first, SIGKILL after ``timeout_s``. Harmless when it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _variables(self) -> dict[str, str]:
        return dict(os.environ)

    def _config(self) -> str:
        settings: dict[str, object] = {
            "dataDir": "data",
            "clientPort": self.port,
            "clientPortAddress": HOST,
            "tickTime": self.tick_ms,
            "minSessionTimeout": 2 * self.tick_ms,
            "maxSessionTimeout": 60_000,
            # All users of this machine have one address: enough for our processes and some more.
            "maxClientCnxns": MOST_CONNECTIONS,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr,ruok",
            "autopurge.snapRetainCount": 3,
            "autopurge.purgeInterval": 1,  # hours
        }
        if self._password:
            settings |= {
                "enforce.auth.enabled": "true",
                "enforce.auth.schemes": "digest",
                "DigestAuthenticationProvider.superDigest": _digest(ADMINISTRATOR, self._password),
            }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _log_size(self) -> int:
        try:
            return (self.data_dir / "zookeeper.log").stat().st_size
        except FileNotFoundError:
            return 0

    def _failed(self, reason: str) -> ServerFailed:
        lines: deque[str] = deque(maxlen=TAIL_LINES)
        for name, offset in (("zookeeper.log", self._log_start), ("zookeeper.out", 0)):
            try:
                with (self.data_dir / name).open("rb") as file:
                    file.seek(offset)
                    lines.extend(file.read().decode("utf-8", "replace").splitlines())
            except FileNotFoundError:
                continue
        return ServerFailed("ZooKeeper", reason, self.data_dir / "zookeeper.log", list(lines))


def _digest(user: str, password: str) -> str:
    """Return what ZooKeeper keeps of a user (DigestAuthenticationProvider.generateDigest)."""
    hashed = hashlib.sha1(f"{user}:{password}".encode(), usedforsecurity=False).digest()
    return f"{user}:{base64.b64encode(hashed).decode()}"


def _write_private(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        os.fchmod(descriptor, 0o600)
        stream.write(text)


def find_jars(names: Sequence[str] = JARS) -> list[Path]:
    """Return the jars with these names; default: what a server needs. Raises JarsNotFound."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsNotFound("PySpark is not installed")
    folder = Path(spec.origin).parent / "jars"
    found = []
    for name in names:
        jars = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if not jars:
            raise JarsNotFound(f"there is no {name} jar", folder)
        found.append(jars[-1])
    return found


def four_letter_word(host: str, port: int, word: str, timeout_s: float = PROBE_TIMEOUT_S) -> bytes:
    """Return what the server at ``host:port`` answers to "srvr", "ruok" or "mntr"; b"" if not."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(word.encode("ascii"))
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer
    except OSError:
        return b""


def free_port(host: str = HOST) -> int:
    """Return a port that is free at this moment; another one with each call.

    Linux gives none of ``CHOICE`` to programs that bind port 0. So no other program takes it by
    chance before its user has started.
    """
    for port in itertools.islice(_choices, len(CHOICE)):
        with suppress(OSError):
            socket.create_server((host, port)).close()
            return port
    with socket.create_server((host, 0)) as listener:
        given: int = listener.getsockname()[1]
        return given


def require_free_port(host: str, port: int, wanted_by: str) -> None:
    """Raise PortTaken if we cannot listen on ``host:port``."""
    try:
        socket.create_server((host, port)).close()
    except PermissionError as error:
        why = "this user may not; choose a port above 1023"
        raise PortTaken(host, port, wanted_by, why) from error
    except OSError as error:
        raise PortTaken(host, port, wanted_by) from error


def die_with_parent(command: list[str]) -> list[str]:
    """Return ``command`` so wrapped that the kernel kills it when its parent ends (Linux only).

    Precisely, when the thread ends that starts it. ``command[0]`` must be an absolute path. The
    process id is the program's own. Elsewhere than on Linux the command is returned as it is.
    """
    if sys.platform != "linux":
        return command
    # Not a preexec_fn: that runs Python between fork and exec, where other threads' locks hang.
    return [sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, str(os.getpid()), *command]
