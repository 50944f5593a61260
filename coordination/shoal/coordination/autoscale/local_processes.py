"""Workers that are processes of this machine, started and stopped by us."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from typing import Self

import structlog

from shoal.coordination import background

log = structlog.get_logger()

# Runs in the child before its program: has the kernel ask it to end (SIGTERM) when the starting
# thread ends, makes sure the parent is not gone already, and becomes the program.
END_WITH_PARENT = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent ended first")
os.execvp(sys.argv[2], sys.argv[2:])
"""


class LocalProcesses:
    """Keep processes that all run ``command``. An ``async with`` block; on its exit all end.

    A worker is ended by SIGTERM: it finishes its work first. If it has not ended after ``drain_s``
    seconds it is killed. Signals go to our own children alone, to the last started
    first. They are in sessions of their own, so Ctrl-C in a terminal reaches only us; on Linux
    they get SIGTERM when we are killed (precisely: when the thread ends that runs this loop).
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        drain_s: float = 30.0,
    ) -> None:
        self._command, self._environment, self._drain_s = list(command), environment, drain_s
        self._workers: list[Process] = []  # in the order of their starts
        self._ends: set[asyncio.Task[None]] = set()  # of those that got SIGTERM

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Return when every process has ended; takes ``drain_s`` and a little at most."""
        await self.release()
        await asyncio.gather(*self._ends)

    @property
    def pids(self) -> list[int]:
        """The processes that are wanted and run, the oldest first."""
        return [worker.pid for worker in self._workers if worker.returncode is None]

    async def count(self) -> int:
        return len(self._workers)

    async def scale_to(self, count: int) -> None:
        """Raises OSError when a process cannot be started."""
        for worker in self._workers:
            if worker.returncode is not None:
                log.warning("worker ended by itself", pid=worker.pid, status=worker.returncode)
        self._workers = [worker for worker in self._workers if worker.returncode is None]
        while len(self._workers) > count:
            self._send_away(self._workers.pop())
        while len(self._workers) < count:
            self._workers.append(await self._start())

    async def release(self) -> None:
        await self.scale_to(0)

    async def _start(self) -> Process:
        worker = await asyncio.create_subprocess_exec(
            *_ending_with_parent(self._command),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        log.info("worker started", pid=worker.pid)
        return worker

    def _send_away(self, worker: Process) -> None:
        if worker.returncode is None:
            worker.terminate()
        end = background.start(self._see_off(worker), f"end of worker {worker.pid}")
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)

    async def _see_off(self, worker: Process) -> None:
        try:
            async with asyncio.timeout(self._drain_s):
                await worker.wait()
        except TimeoutError:
            log.warning("worker killed: it did not end", pid=worker.pid, drain_s=self._drain_s)
            worker.kill()
            await worker.wait()
        log.info("worker ended", pid=worker.pid, status=worker.returncode)


def _ending_with_parent(command: list[str]) -> list[str]:
    if sys.platform != "linux":
        return command
    # Not a preexec_fn: that runs Python between fork and exec, where other threads' locks hang.
    return [sys.executable, "-I", "-S", "-c", END_WITH_PARENT, str(os.getpid()), *command]
