"""A whole cluster on one machine: ZooKeeper and all roles under one supervisor.

The supervisor starts the processes in order, restarts those that end by themselves, and stops them
in order. Roles are forked from one process that has imported them all (``fork_server.py``). None
can outlive the supervisor (``die_with_parent``). Synchronous and single-threaded; call it from the
main thread.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from shoal.client.errors import DataFolderUnusable, PortTaken, ServerFailed
from shoal.client.libraries import httpx
from shoal.client.local.data_folder import (
    ClusterState,
    cluster_lock,
    ensure_identity,
    ensure_token,
    ensure_zookeeper_password,
    make_data_folder,
    read_state,
    unusable,
    write_state,
    zookeeper_credential,
)
from shoal.client.local.fork_server import START_S, ForkServer, Request, RoleProcess
from shoal.client.local.java import find_java, spark_java_home
from shoal.client.local.zookeeper import (
    HOST,
    ZooKeeperServer,
    free_port,
    require_free_port,
)
from shoal.runtime.folder_identity import FolderIdentity
from shoal.runtime.settings import ClusterSettings, load_settings
from shoal.runtime.vault import create_key

DEFAULT_API_PORT = 8765
READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 45.0  # workers give running tasks 30 s
_TAIL_LINES = 15
_LOGS_EVERY_S = 60.0  # between two looks at how long the logs have become
_BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0)
# A process that ran at least this long was healthy: its next failure starts a new count.
_HEALTHY_S = 60.0
_ZOOKEEPER_PAUSE_S = 2.0
# With less, ZooKeeper and the database fail at once, and not in words.
_LEAST_FREE_BYTES = 16 * 2**20

Progress = Callable[[str], None]


@dataclass
class _Process:
    """One supervised process."""

    name: str
    arguments: list[str]
    log: Path
    environment: dict[str, str]
    server: ForkServer
    process: RoleProcess | None = None
    request: Request | None = None  # for the next one, while that has no answer
    late_at: float = 0.0  # when to say that it has none
    started: float = 0.0
    failures: int = 0
    restart_at: float | None = None
    rotate_at: float = 0.0
    log_start: int = 0  # bytes of the log that earlier starts wrote
    output: IO[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start it and wait for that. Raises ServerFailed, OSError."""
        self.process = self._ask().wait()
        self.started = time.monotonic()
        self.restart_at = None

    def _ask(self) -> Request:
        """Ask for it; its output goes behind what earlier starts wrote."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        rotate(self.log)
        with self.log.open("ab") as output:
            self.log_start = output.tell()
            return self.server.request(self.arguments, self.environment, output)

    def look(self, now: float) -> str | None:
        """Start it again if it has ended, without waiting; return news for people."""
        if now >= self.rotate_at:
            self.rotate_at = now + _LOGS_EVERY_S
            if rotate(self.log):
                self.log_start = 0
        try:
            if self.request is not None:
                return self._look_at_request(self.request, now)
            if self.process is None or self.process.poll() is None:
                return None
            if self.restart_at is not None and now >= self.restart_at:
                self.request, self.late_at = self._ask(), now + START_S
        except (ServerFailed, OSError) as error:
            self.request = None
            self.failures += 1
            reason = f"{error.program} {error.reason}" if isinstance(error, ServerFailed) else error
            return f"{self.name} cannot start again yet: {reason}; {self._plan_restart(now)}"
        if self.restart_at is None:
            healthy = now - self.started > _HEALTHY_S
            self.failures = 1 if healthy else self.failures + 1
            return f"{self.name} ended with status {self.process.returncode}; " + (
                self._plan_restart(now)
            )
        return None

    def _look_at_request(self, request: Request, now: float) -> str | None:
        if (role := request.poll()) is not None:
            self.process, self.request = role, None
            self.started, self.restart_at = now, None
        elif now >= self.late_at:
            self.late_at = now + START_S
            return f"{self.name} is still to start; its log is {self.log}"
        return None

    def _plan_restart(self, now: float) -> str:
        pause = _BACKOFF_S[min(self.failures, len(_BACKOFF_S)) - 1]
        self.restart_at = now + pause
        return f"starting it again in {pause:g} s (log: {self.log})"

    def tail(self) -> list[str]:
        """Return the last lines that it wrote since its newest start."""
        try:
            with self.log.open("rb") as file:
                file.seek(self.log_start)
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return []
        return lines[-_TAIL_LINES:]


class LocalCluster:
    """A running local cluster; a context manager that starts and stops it.

    ``api_port`` None: 8765, or the next free one. ``progress`` is called with each step in words.
    """

    def __init__(
        self,
        data: Path,
        *,
        masters: int = 2,
        workers: int = 2,
        api_port: int | None = None,
        slots: int | None = None,
        progress: Progress = lambda _text: None,
        give_up: Callable[[], bool] = lambda: False,
        rebind: bool = False,
    ) -> None:
        self.data = data.expanduser().absolute()
        self.masters, self.workers, self.slots = masters, workers, slots
        self.api_port = api_port
        self._progress = progress
        self._rebind = rebind
        self._give_up = give_up  # called while waiting for the start: was a stop requested?
        self.token = ""
        self.url = ""
        self._zookeeper: ZooKeeperServer | None = None
        self._credential = ""  # for that server
        self._zookeeper_again = 0.0  # not before this monotonic time
        self._rotate_at = 0.0  # monotonic
        self._server = ForkServer(self.data)
        self._children: list[_Process] = []
        self._lock = cluster_lock(self.data)
        self._start_id = ""

    def progress(self, text: str) -> None:
        """Tell people; that a full disk or a closed pipe keeps it from them ends nothing."""
        with suppress(OSError):
            self._progress(text)

    def __enter__(self) -> Self:
        make_data_folder(self.data)
        try:
            self._start_id = self._lock.__enter__()
        except OSError as error:
            raise unusable(self.data, error) from error
        try:
            self._start()
        except OSError as error:
            self.stop()
            self._lock.__exit__(None, None, None)
            raise unusable(self.data, error) from error
        except BaseException:
            self.stop()
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self._lock.__exit__(kind, error, trace)

    # -- start -------------------------------------------------------------------------------

    def _start(self) -> None:
        settings = load_settings(ClusterSettings, "cluster", self.data)
        before = read_state(self.data)
        if before is not None and not before.is_of(self.data):
            self.progress(
                f"this data folder was copied or moved from {before.path}; if that is still used, "
                "give this one a name of its own first (docs/storage.md)"
            )
        free = shutil.disk_usage(self.data).free
        if free < _LEAST_FREE_BYTES:
            raise DataFolderUnusable(
                self.data,
                f"only {free // 2**20} MB are free there",
                "free some, or choose another folder with --data",
            )
        port = self._choose_api_port()
        self.token = ensure_token(self.data)
        ensure_identity(self.data / "tls")
        create_key(settings.secrets_key_file)
        java = find_java()
        self.progress(f"Java {java.version} ({java.origin})")
        self._server.prepare()  # it imports while ZooKeeper starts
        zookeeper = settings.zookeeper
        if "zookeeper" not in settings.model_fields_set:
            zookeeper = self._start_zookeeper(before)
        self.url = f"http://{HOST}:{port}"
        write_state(
            self.data,
            ClusterState(
                api=self.url,
                zookeeper=zookeeper,
                database_url=settings.database_url,
                pid=os.getpid(),
                masters=self.masters,
                workers=self.workers,
                start=self._start_id,
                path=str(self.data),
                identity=str(FolderIdentity.of(self.data) or ""),
            ),
        )
        environment = {
            **os.environ,
            "SHOAL_ZOOKEEPER": zookeeper,
            "SHOAL_ZOOKEEPER_CREDENTIAL": settings.zookeeper_credential or self._credential,
            "JAVA_HOME": str(spark_java_home(java, self.data / "java")),
        }
        if self._rebind:
            environment["SHOAL_REBIND"] = "true"
        self._children = self._plan(port, environment)
        self._start_children()
        if self._rebind:
            del environment["SHOAL_REBIND"]  # for this start, not for what is started again

    def _start_children(self) -> None:
        """Start all; return when they are ready."""
        if self._rebind:
            # A worker compares its folder with the tree, so that has to be bound before.
            for child in self._children:
                if not child.name.startswith("worker-"):
                    child.start()
            self._wait_ready(0)
        for child in self._children:
            if child.process is None:
                child.start()
        self._wait_ready(self.workers)

    def _choose_api_port(self) -> int:
        """A port that was given must be free; the default one may give way to the next."""
        if self.api_port is not None:
            require_free_port(HOST, self.api_port, "the API")
            return self.api_port
        for port in range(DEFAULT_API_PORT, DEFAULT_API_PORT + 100):
            try:
                require_free_port(HOST, port, "the API")
            except PortTaken:
                self.progress(f"port {port} is taken, trying the next one")
                continue
            return port
        return free_port()

    def _start_zookeeper(self, before: ClusterState | None) -> str:
        """Start the embedded server, on the same port as last time if that is free."""
        port = free_port()
        if before is not None and before.is_of(self.data):  # not that of a cluster copied from
            previous = before.zookeeper.rpartition(":")[2]
            try:
                require_free_port(HOST, int(previous), "ZooKeeper")
                port = int(previous)
            except (ValueError, OverflowError):
                pass  # no port: the file is no longer ours
            except PortTaken:
                self.progress(f"ZooKeeper's port {previous} is taken, using {port}")
        started = time.monotonic()
        password = ensure_zookeeper_password(self.data)
        self._credential = zookeeper_credential(password)
        self._zookeeper = ZooKeeperServer(
            self.data / "zookeeper", port, find_java(), password=password
        )
        self._zookeeper.start()
        self._zookeeper.wait_ready()
        self.progress(f"ZooKeeper on port {port} ({time.monotonic() - started:.1f} s)")
        return self._zookeeper.address

    def _plan(self, port: int, environment: dict[str, str]) -> list[_Process]:
        def child(name: str, role: str, *arguments: str) -> _Process:
            return _Process(
                name,
                [role, "--data", str(self.data), *arguments],
                self.data / "logs" / f"{name}.log",
                environment,
                self._server,
            )

        slots = ["--set", f"slots={self.slots}"] if self.slots else []
        return [
            child("api", "api", "--set", f"port={port}", "--set", "first_admin=false"),
            child("alert", "alert"),
            *(child(f"master-{n}", "master") for n in range(1, self.masters + 1)),
            *(
                child(f"worker-{n}", "worker", "--set", f"name=worker-{n}", *slots)
                for n in range(1, self.workers + 1)
            ),
        ]

    def _wait_ready(self, expected: int) -> None:
        """Return when the API answers and lists every master and as many workers."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        started = time.monotonic()
        told: str | None = None
        with httpx.Client(
            headers={"Authorization": f"Bearer {self.token}"}, timeout=2.0, trust_env=False
        ) as client:
            while time.monotonic() < deadline:
                self._require_alive()
                if self._give_up():
                    raise KeyboardInterrupt
                try:
                    health = client.get(f"{self.url}/api/v1/health").json()
                except (httpx.TransportError, ValueError):
                    time.sleep(0.05)  # there is no event to wait for across processes
                    continue
                masters, workers = health.get("masters", 0), health.get("workers", 0)
                text = f"{masters} of {self.masters} masters, {workers} of {expected} workers"
                if masters >= self.masters and workers >= expected:
                    self.progress(
                        f"API on {self.url}, {self.masters} masters, {expected} "
                        f"workers ({time.monotonic() - started:.1f} s)"
                    )
                    return
                if text != told:
                    self.progress(f"waiting: {text}")
                    told = text
                time.sleep(0.05)
        slow = next((c for c in self._children if c.failures), self._children[0])
        raise ServerFailed(
            "the cluster",
            f"was not ready within {READY_TIMEOUT_S:g} s ({told or 'the API does not answer'})",
            slow.log,
            slow.tail(),
        )

    def _require_alive(self) -> None:
        for child in self._children:
            if child.process is not None and child.process.poll() is not None:
                raise ServerFailed(
                    child.name,
                    f"ended with status {child.process.returncode}",
                    child.log,
                    child.tail(),
                )

    # -- while it runs -----------------------------------------------------------------------

    def watch(self) -> None:
        """Start again what has ended. Call a few times a second."""
        now = time.monotonic()
        self._watch_zookeeper(now)
        if now >= self._rotate_at:
            self._rotate_at = now + _LOGS_EVERY_S
            rotate(self.data / "logs" / "cluster.log")  # our own, if we run in the background
        for child in self._children:
            news = child.look(now)
            if news:
                self.progress(news)

    def _watch_zookeeper(self, now: float) -> None:
        """Start it again, at most every few seconds: what ended it (a full disk) may last."""
        server = self._zookeeper
        if server is None or server.running or now < self._zookeeper_again:
            return
        self._zookeeper_again = now + _ZOOKEEPER_PAUSE_S
        try:
            server.start()
        except (PortTaken, OSError) as error:  # the roles wait for it; none has to stop
            self.progress(f"ZooKeeper cannot start again yet: {error}")
        else:
            self.progress("ZooKeeper ended; starting it again")

    def pids(self) -> dict[str, int]:
        """Process ids by name (zookeeper, api, master-1 …) of what runs now."""
        found = {
            c.name: c.process.pid
            for c in self._children
            if c.process is not None and c.process.poll() is None
        }
        if self._zookeeper is not None and self._zookeeper.pid is not None:
            found["zookeeper"] = self._zookeeper.pid
        return found

    def stop(self) -> None:
        """Stop in order: no new work, workers finish, masters take the results, the rest."""
        for prefix in ("api", "alert", "worker", "master"):
            group = [c for c in self._children if c.name.startswith(prefix)]
            for child in group:
                if child.request is not None:
                    child.request.give_up()
                if child.process is not None and child.process.poll() is None:
                    child.process.terminate()
            deadline = time.monotonic() + STOP_TIMEOUT_S
            for child in group:
                if child.process is None:
                    continue
                try:
                    child.process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self.progress(f"{child.name} does not stop; killing it")
                    child.process.kill()
                    child.process.wait()
        self._children = []
        self._server.close()
        if self._zookeeper is not None:
            self._zookeeper.stop()
            self._zookeeper = None


MOST_BYTES = 16 * 2**20


def rotate(log: Path, most_bytes: int = MOST_BYTES) -> bool:
    """Copy a log that has become too long to ``<name>.1`` and empty it; return whether it was.

    Its writer has opened it for appending, so what comes next stands at its beginning.
    Lines written between the last read and the emptying are lost: microseconds. The older copy is
    overwritten. On a full disk there is no copy, and the log is emptied all the same.
    """
    try:
        if log.stat().st_size <= most_bytes:
            return False
    except OSError:
        return False
    kept = log.with_name(f"{log.name}.1")
    with suppress(OSError):
        _copy(log, kept)
    with suppress(OSError):
        os.truncate(log, 0)
        return True
    return False


def _copy(log: Path, kept: Path) -> None:
    """Copy until the end."""
    try:
        with log.open("rb") as source, kept.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            while piece := source.read():
                target.write(piece)
    except OSError:
        kept.unlink(missing_ok=True)  # half of it would only fill the disk
        raise
