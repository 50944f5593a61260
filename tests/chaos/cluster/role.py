"""One process of the cluster under test: a master, a worker or the API."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from shoal.client.local.zookeeper import die_with_parent
from tests.chaos.cluster.hosts import Host
from tests.chaos.cluster.links import Link

_LAUNCHER_MAIN = "supervisor/main.py"
# How a worker's watchdog and its launcher call themselves once they are ready.
_LAUNCHER = "shoal-launcher"
_TITLES = frozenset({"task-watchdog", _LAUNCHER})
_SHIM = "shoal-shim"  # between the launcher and each of its tasks
_STOP_S = 60.0
_BACKOFF_S = 0.3  # before a role that has ended by itself is started again


class Role:
    """A real ``shoal`` process, started as the local cluster starts its own.

    Set ``held`` to keep a role down; otherwise ``look`` starts it again. Call
    everything from the main thread: the kernel ends a process with the thread that started it.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        zookeeper: Link,
        database: Link | None,
    ) -> None:
        self.name, self.log = name, log
        self.host = host
        self.kind = name.partition("-")[0]
        self.zookeeper, self.database = zookeeper, database
        self.held = False
        self.exits: list[str] = []  # ends that nobody asked for
        self._arguments, self._environment = list(arguments), dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._again_at: float | None = None

    def copy(self, name: str, **settings: str) -> "Role":
        """Return another one with the same settings but for these; it is not started."""
        environment = self._environment | settings
        log = self.log.with_name(f"{name}.log")
        return Role(
            name, self.host, self._arguments, environment, log, self.zookeeper, self.database
        )

    def setting(self, name: str) -> str:
        """Return an environment variable that it is started with."""
        return self._environment[name]

    @property
    def pid(self) -> int:
        """The newest process, alive or not; 0 before the first start."""
        return self._process.pid if self._process else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """How the newest process ended; None while it runs."""
        return self._process.poll() if self._process else None

    def start(self, failpoints: str = "") -> None:
        """Start it, armed with ``failpoints``. It must not be running."""
        assert not self.running, f"{self.name} runs already"
        environment = self._environment | ({"SHOAL_FAILPOINTS": failpoints} if failpoints else {})
        command = [sys.executable, "-m", "shoal.client.local.roles", *self._arguments]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                die_with_parent(self.host.command(command)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self._again_at = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the role's own process."""
        if self.running:
            assert self._process is not None
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the role's own process and wait for its end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ask the role to leave in order; kill it if it does not."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.exits.append(f"{self.name} did not stop within {_STOP_S:g} s")
            self.kill()

    def look(self) -> None:
        """Start it again, a moment after it has ended without being told to."""
        if self.held or self._process is None or self._process.poll() is None:
            return
        now = time.monotonic()
        if self._again_at is None:
            status = self._process.returncode
            self.exits.append(f"{self.name} ended with status {status}: {self.last_line()}")
            self._again_at = now + _BACKOFF_S
        elif now >= self._again_at:
            self.start()

    def last_line(self) -> str:
        """Return the last line of its log, for people."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 4096))
            lines = file.read().decode("utf-8", "replace").splitlines()
        return lines[-1][:300] if lines else ""

    def log_size(self) -> int:
        """Return the length of its log: what comes later is news."""
        return self.log.stat().st_size

    def said(self, words: bytes, since: int) -> int:
        """Return how often its log has ``words`` after the first ``since`` bytes."""
        with self.log.open("rb") as file:
            file.seek(since)
            return file.read().count(words)

    # -- the processes below a worker ----------------------------------------------------------

    def supervisors(self) -> list[int]:
        """Return a worker's watchdog and launcher, which is the child of the other."""
        twice = [self._chain(), self._chain()]
        # A shim that was just forked looks like its launcher until it has its own name.
        return [pid for pid in twice[0] if pid in twice[1]]

    def launcher(self) -> int | None:
        """Return a worker's launcher; None if there is none just now."""
        # The first of that name: a shim that was just forked has it, too.
        return next((pid for pid in self.supervisors() if _title(pid) == _LAUNCHER), None)

    def _chain(self) -> list[int]:
        found: list[int] = []
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(self.pid).children()
            while below := [p for p in below if _is_launcher(p)]:
                found.append(below[0].pid)
                if _title(found[-1]) == _LAUNCHER:  # below are shims, named so until they are ready
                    break
                below = below[0].children()
        return found

    def tree(self) -> list[psutil.Process]:
        """Return the role's process and everything below it."""
        try:
            top = psutil.Process(self.pid)
            return [top, *top.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def tasks(self) -> list[psutil.Process]:
        """Return the processes of a worker's tasks; none of other roles."""
        below = [process for process in self.tree() if process.pid != self.pid]
        return [p for p in below if not _is_launcher(p) and _command(p)[:1] != [_SHIM]]


def _is_launcher(process: psutil.Process) -> bool:
    command = _command(process)
    title = command[0] if command else ""
    return title in _TITLES or any(part.endswith(_LAUNCHER_MAIN) for part in command)


def _title(pid: int) -> str:
    try:
        return (_command(psutil.Process(pid)) or [""])[0]
    except psutil.NoSuchProcess:
        return ""


def _command(process: psutil.Process) -> list[str]:
    """Return its command line, empty if it is gone, or going."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def signal_all(processes: Sequence[psutil.Process], number: signal.Signals) -> list[int]:
    """Send a signal to each that still is what it was; return those that got it."""
    reached = []
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)  # checks that the number was not given away
            reached.append(process.pid)
    return reached


def still_alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return those that run, the same ones."""
    alive = []
    for process in processes:
        with suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def base_environment() -> dict[str, str]:
    """Return this process's environment without settings of Shoal."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
