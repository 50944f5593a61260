"""Work on texts of users that may take long or much memory, in processes beside a service.

Parsers and template engines spend some of their time in C, where neither a budget nor another
thread can stop them: a text of 20,000 characters holds the whole interpreter for ten seconds, or
takes all memory. ``SideProcesses`` runs such functions elsewhere. A process starts when it is
needed, does one piece of work after the other, and ends when it is idle for a minute, when its
work exceeds the limits, or when the service ends.

Each owner of work (a project, a caller) has one piece under way at a time, so that the work of one
cannot take all processes. All limits are of one piece:

- ``CPU_S`` of processor time, or what the caller names: the process ends itself by a timer, which
  works in C code as well.
- ``MEMORY_MB`` of address space: what needs more raises MemoryError there.
- ``WAIT_S`` until it begins, not counting the start of a process.
- ``LONGEST_S`` until it has ended: for work that waits, on a machine under load.
"""

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import struct
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any, BinaryIO, ClassVar, Self, TypeVar

import structlog

from shoal.core.errors import ShoalError

CPU_S = 1.0
MEMORY_MB = 768
WAIT_S = 10.0
LONGEST_S = 120.0
MOST_PROCESSES = 2
_IDLE_S = 60.0
_READY = b"\n"
_HEAD = struct.Struct(">Q")

T = TypeVar("T")
log = structlog.get_logger()


class WorkTooLarge(ShoalError):
    """A piece of work exceeds the limits of one."""


class NoTurn(ShoalError):
    """A piece of work has waited too long for others."""

    retriable: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(f"other work of this kind has taken {WAIT_S:g} s; try again later")


class SideProcesses:
    """Runs functions in at most ``most`` processes, for one event loop.

    Use it as ``async with``. The end of the block ends the processes.
    """

    def __init__(self, most: int = MOST_PROCESSES) -> None:
        self._room = asyncio.Semaphore(most)
        self._owners: defaultdict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: defaultdict[Hashable, int] = defaultdict(int)
        self._idle: list[tuple[_Process, asyncio.TimerHandle]] = []
        self._all: set[_Process] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in list(self._all):
            process.kill()
        for process in list(self._all):
            await process.ended()

    async def run(
        self, owner: Hashable, work: Callable[..., T], *arguments: Any, cpu_s: float = CPU_S
    ) -> T:
        """Return what ``work`` returns. It is a function of a module, and its values are pickled.

        ``cpu_s``: processor time that it may take, in seconds. Raises what it raises;
        WorkTooLarge, NoTurn.
        """
        self._waiting[owner] += 1
        try:
            async with contextlib.AsyncExitStack() as turns:
                try:
                    async with asyncio.timeout(WAIT_S):
                        await turns.enter_async_context(self._owners[owner])
                        await turns.enter_async_context(self._room)
                except TimeoutError:
                    raise NoTurn from None
                request = pickle.dumps((work, arguments, cpu_s))
                return await self._run(request, cpu_s)  # type: ignore[no-any-return]
        finally:
            self._waiting[owner] -= 1
            if not self._waiting[owner]:
                del self._waiting[owner], self._owners[owner]

    async def _run(self, request: bytes, cpu_s: float) -> Any:
        if self._idle:
            process, timer = self._idle.pop()
            timer.cancel()
        else:
            try:
                process = await _Process.start()
            except _Ended as error:
                raise WorkTooLarge(str(error)) from None
            self._all.add(process)
        try:
            async with asyncio.timeout(LONGEST_S):
                answer = await process.ask(request, cpu_s)
        except TimeoutError:
            raise WorkTooLarge(f"it takes more than {LONGEST_S:g} s") from None
        except _Ended as error:
            raise WorkTooLarge(str(error)) from None
        else:
            is_well, value = pickle.loads(answer)  # noqa: S301 - written by our own program
            if not isinstance(value, MemoryError):  # else the process keeps what it has taken
                loop = asyncio.get_running_loop()
                self._idle.append((process, loop.call_later(_IDLE_S, self._retire, process)))
            if is_well:
                return value
            if isinstance(value, MemoryError):
                raise WorkTooLarge(f"it takes more than {MEMORY_MB} MB of memory")
            raise value
        finally:
            if all(process is not one for one, _ in self._idle):
                process.kill()
                await asyncio.shield(process.ended())
                self._all.discard(process)

    def _retire(self, process: "_Process") -> None:
        self._idle = [one for one in self._idle if one[0] is not process]
        self._all.discard(process)
        process.close()


class _Ended(Exception):
    """The process has ended instead of answering."""


class _Process:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._cpu_s = CPU_S  # of the work under way

    @classmethod
    async def start(cls) -> "_Process":
        pipe = asyncio.subprocess.PIPE
        program = [sys.executable, "-m", "shoal.runtime.side.process"]
        started = cls(await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe))
        try:
            await started._read(len(_READY))  # the limits of its work do not include its start
        except BaseException:
            started.kill()
            raise
        return started

    async def ask(self, request: bytes, cpu_s: float) -> bytes:
        """Return the answer. Raises _Ended."""
        self._cpu_s = cpu_s
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(_HEAD.pack(len(request)) + request)
            await self._process.stdin.drain()
        except ConnectionError:
            pass  # to read says why
        (length,) = _HEAD.unpack(await self._read(_HEAD.size))
        return await self._read(length)

    async def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.readexactly(count)
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await self._process.wait()
        if code == -signal.SIGPROF:
            raise _Ended(f"it takes more than {self._cpu_s:g} s of processor time")
        log.warning("a side process has ended", exit_code=code)
        raise _Ended(f"its process has ended with code {code}")

    def close(self) -> None:
        """Let the process end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """End the process."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def ended(self) -> None:
        """Return when the process has ended."""
        await self._process.wait()


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more. In the side process."""
    while head := requests.read(_HEAD.size):
        (length,) = _HEAD.unpack(head)
        answer = _answer(requests.read(length))
        answers.write(_HEAD.pack(len(answer)) + answer)
        answers.flush()


def _answer(request: bytes) -> bytes:
    try:
        work, arguments, cpu_s = pickle.loads(request)  # noqa: S301 - written by our own service
        # What is imported now is not the work's.
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        try:
            answer = True, work(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        return pickle.dumps(answer)
    except MemoryError:
        return pickle.dumps((False, MemoryError()))
    except BaseException as error:  # noqa: BLE001 - it is raised in the service
        try:
            refusal = pickle.dumps((False, error))
            pickle.loads(refusal)  # noqa: S301
        except Exception:  # noqa: BLE001 - some errors cannot be pickled
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return refusal


def main() -> None:
    """Entry point of a side process: requests on standard input, answers on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the service, too
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    limit = MEMORY_MB * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)  # services first
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is not an answer
    answers.write(_READY)
    answers.flush()
    _serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
