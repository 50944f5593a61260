"""Run worker agents in tests: in this process, or as a process that may be killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from shoal.coordination import MemberInfo, Members, ZkSession
from shoal.coordination.cluster import layout
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.runtime.settings import ClusterSettings
from shoal.worker.attempts.held import PREFETCH_TIMES, PrefetchTimes
from shoal.worker.home.spool import Spool
from shoal.worker.main import run_worker
from shoal.worker.settings import WorkerSettings
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S
from tests.support.waiting import eventually as eventually

PROGRAM = """\
import asyncio, json, logging, os, structlog, sys
from pathlib import Path
from shoal.runtime.settings import ClusterSettings
from shoal.worker.main import serve
from shoal.worker.settings import WorkerSettings
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
cluster, settings = json.loads(sys.argv[1])
asyncio.run(serve(WorkerSettings(**settings), ClusterSettings(**cluster)))
"""


def cluster_settings(data: Path, zookeeper: str) -> ClusterSettings:
    return ClusterSettings(
        data=data, zookeeper=zookeeper, partitions=4, session_timeout_s=SERVICE_SESSION_S
    )


class InProcessWorker:
    """An agent in this event loop. Leaving the block stops it in order."""

    def __init__(
        self, cluster: ClusterSettings, times: PrefetchTimes = PREFETCH_TIMES, **settings: Any
    ) -> None:
        values = {"name": "w", "slots": 4, "kill_grace_s": 0.5, "drain_s": 5.0, **settings}
        self._cluster, self._settings, self._times = cluster, WorkerSettings(**values), times
        self.stop, self.at_once = asyncio.Event(), asyncio.Event()
        self.task: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(
            run_worker(
                self._settings,
                self._cluster,
                self.stop,
                self.at_once,
                prefetch_times=self._times,
            )
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.stop.set()
        if kind is not None:
            self.at_once.set()
        async with asyncio.timeout(DEADLINE_S):
            await self.task


class WorkerProcess:
    """An agent in a process of its own. Leaving the block kills what is left of it."""

    def __init__(self, cluster: ClusterSettings, **settings: Any) -> None:
        values = {"name": "w", "slots": 4, "kill_grace_s": 0.5, "drain_s": 5.0, **settings}
        given = cluster.model_dump(mode="json", exclude_none=True), values
        self._log = cluster.data / f"worker-{time.monotonic_ns()}.err"
        with self._log.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, json.dumps(given)], stderr=err
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()
        if kind is not None:
            sys.stderr.write(self.log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """What it said on standard error."""
        return self._log.read_text()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def wait(self, timeout_s: float = DEADLINE_S) -> int:
        """Return its exit status."""
        return await asyncio.to_thread(self._process.wait, timeout_s)


def until(file: Path) -> str:
    """Return a shell script that ends when ``file`` exists."""
    return f"until [ -e '{file}' ]; do sleep 0.02; done"


async def the_worker(
    session: ZkSession, count: int = 1, pid: int | None = None, timeout_s: float = DEADLINE_S
) -> MemberInfo:
    """Return the newest of ``count`` registered workers, or the one of process ``pid``."""
    async with asyncio.timeout(timeout_s), Members(session, layout.WORKERS, reread_s=0.1) as all_:
        async for view in all_.changes():
            found = sorted(view.values(), key=lambda member: member.czxid)
            if pid is not None:
                found = [member for member in found if member.data["pid"] == pid]
            if len(found) >= count:
                return found[-1]
    raise AssertionError("the view of the members ended")


def alive(pid: int) -> bool:
    """Return whether that process exists and is not a zombie."""
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass(frozen=True)
class Process:
    """A process as /proc shows it."""

    pid: int
    args: str

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def children(pid: int) -> list[Process]:
    """Return the direct children of all threads of that process; none if it is gone."""
    found = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in listing.read_text().split():
                args = Path(f"/proc/{child}/cmdline").read_bytes()
                found.append(Process(int(child), args.replace(b"\0", b" ").decode()))
    return found


def descendants(pid: int) -> list[Process]:
    """Return all processes below one."""
    return [each for child in children(pid) for each in (child, *descendants(child.pid))]


def log_file(data: Path, task_instance_id: int) -> Path:
    return _home(data) / "logs" / "tests.wf" / "7" / f"{task_instance_id}.log"


def log_text(data: Path, task_instance_id: int) -> str:
    return log_file(data, task_instance_id).read_bytes().decode()


def spool(data: Path) -> list[str]:
    """Ids of the results that no master has settled."""
    return sorted(entry.id for entry in Spool(_home(data) / "spool").pending())


def work_folders(data: Path) -> list[str]:
    return [name for name in os.listdir(_home(data) / "work") if not name.startswith(".")]


def _home(data: Path) -> Path:
    return data / "workers" / "w" / "1"


async def kill(
    channels: Channels, member: MemberInfo, *numbers: int, reason: str = "stopped by alice"
) -> list[int]:
    request = pb.KillRequest(task_instance_ids=numbers, reason=reason)
    address = str(member.data["address"])
    return list(
        (await call(address, channels.worker(address).Kill(request, timeout=DEADLINE_S))).known
    )


def everything_below(folder: Path) -> bytes:
    """The contents of all regular files."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
