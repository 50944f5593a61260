"""A clock and an agenda that the event loops of several processes share, without real time.

A process is an event loop that turns only when its world lets it: it can be paused and killed.
``imitate`` puts the world's clock, randomness and threads in the place of the real ones in the
modules of the coordination library.
"""

import asyncio
import heapq
import random
import sys
import time
import types
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from shoal.coordination.session import boottime as real_boottime

WALL_S = 1_800_000_000.0  # the time of day at which every world begins
MOST_CANCELS = 100  # of what a dead process was at
TURN_S = 1e-6  # what a turn of a loop takes
MOST_TURNS = 20_000  # of loops in a row: more are a loop that never waits


class World:
    """The clock, the agenda, the processes, and what went wrong."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_s = 0.0
        self.server: Any = None
        self.processes: list[Process] = []
        self.problems: list[str] = []  # errors that the library logs as unexpected
        self.is_calm = False  # nothing goes wrong any longer
        self.steps = 0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, when_s: float, action: Callable[[], None]) -> None:
        """Have ``action`` called at a moment; in their order if the moments are equal."""
        self._count += 1
        heapq.heappush(self._agenda, (max(when_s, self.now_s), self._count, action))

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        self.at(self.now_s + delay_s, action)

    def run_until(self, is_done: Callable[[], bool], limit_s: float) -> bool:
        """Let time pass until ``is_done`` holds; return whether it did before ``limit_s``."""
        global current
        current = self
        while not is_done():
            self._settle()
            if is_done():
                return True
            next_s = min(
                [process.loop.next_s for process in self.processes if process.is_running]
                + ([self._agenda[0][0]] if self._agenda else []),
                default=float("inf"),
            )
            if next_s > limit_s:
                self.now_s = max(self.now_s, limit_s)
                return is_done()
            self.now_s = max(self.now_s, next_s)
            if self._agenda and self._agenda[0][0] <= self.now_s:
                self.steps += 1
                heapq.heappop(self._agenda)[2]()
        return True

    def run_for(self, seconds: float) -> None:
        self.run_until(lambda: False, self.now_s + seconds)

    def _settle(self) -> None:
        """Turn all loops until none has anything to do at this moment."""
        turns = 0
        while ready := [p for p in self.processes if p.is_running and p.loop.next_s <= self.now_s]:
            turns += 1
            assert turns < MOST_TURNS, f"a loop never waits at {self.now_s}"
            for process in ready:
                if process.is_running:
                    self.steps += 1
                    self.now_s += TURN_S
                    process.loop.turn()


class Process:
    """An event loop with its connections. ``is_running``: neither paused nor killed."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.loop = ProcessLoop(world, self)
        self.loop.set_exception_handler(self._note_problem)
        self.is_alive, self.paused_until_s = True, 0.0
        self.paused_at_s = self.ran_again_at_s = float("-inf")  # the last pause, and its end
        self._arrived: deque[Callable[[], None]] = deque()  # for its threads, while it is paused
        self.connections: list[Any] = []
        world.processes.append(self)

    @property
    def is_running(self) -> bool:
        return self.is_alive and self.paused_until_s <= self.world.now_s

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        return self.loop.create_task(work, name=name)

    def on_thread(self, action: Callable[[], None]) -> None:
        """Do what a thread of the process does, as soon as the process runs."""
        if not self.is_alive:
            return
        if self.is_running and not self._arrived:
            action()
        else:
            self._arrived.append(action)

    def pause(self, seconds: float) -> None:
        now_s = self.world.now_s
        if not self.is_running:
            return
        self.paused_at_s, self.paused_until_s = now_s, now_s + seconds
        self.world.at(self.paused_until_s, self._go_on)

    def resume_now(self) -> None:
        """End a pause before its time."""
        if not self.is_running:
            self.paused_until_s = self.world.now_s
            self._go_on()

    def _go_on(self) -> None:
        if not self.is_running or self.ran_again_at_s >= self.paused_until_s:
            return  # a pause that has ended before its time
        self.ran_again_at_s = self.world.now_s
        while self._arrived and self.is_running:
            self._arrived.popleft()()

    def kill(self) -> None:
        """End at once, as by SIGKILL: nothing of it is done any more."""
        self.is_alive = False
        for connection in self.connections:
            connection.vanish()

    def tasks(self) -> set["asyncio.Task[Any]"]:
        return asyncio.all_tasks(self.loop)

    def dispose(self) -> None:
        """Forget what is left of it, without a warning for each task."""
        self.loop.set_exception_handler(lambda *_: None)
        for connection in self.connections:
            connection.stop()
        for _ in range(MOST_CANCELS):
            if not (tasks := self.tasks()):
                break
            for task in tasks:
                task.cancel()
            self.world.now_s += 1.0  # some only sleep
            self.loop.turn()
        left = sorted(task.get_name() for task in self.tasks())
        assert not left, f"tasks that cannot be cancelled: {left}"
        self.loop.close()

    def _note_problem(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.world.problems.append(f"{self.name}: {context['message']}: {error!r}")


class ProcessLoop(asyncio.BaseEventLoop):
    """asyncio's loop in the time of a world. Work for threads is done at once."""

    _selector: Any
    _ready: "deque[Any]"
    _scheduled: list[Any]
    _run_once: Callable[[], None]

    def __init__(self, world: World, process: Process) -> None:
        super().__init__()
        self._world, self.process = world, process
        self._selector = self  # ``select`` finds nothing: there are no descriptors
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._world.now_s

    def select(self, _: float | None) -> list[Any]:
        return []

    def _process_events(self, _: list[Any]) -> None:
        return

    def _write_to_self(self) -> None:
        return

    def run_in_executor(  # type: ignore[override]
        self, _: Any, function: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        done = self.create_future()
        try:
            done.set_result(function(*args))
        except Exception as error:  # noqa: BLE001 - for the caller
            done.set_exception(error)
        return done

    @property
    def next_s(self) -> float:
        """When it has something to do; 0 if now, infinity if nothing is planned."""
        if self._ready:
            return 0.0
        while self._scheduled and self._scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(self._scheduled)._scheduled = False
        return self._scheduled[0]._when if self._scheduled else float("inf")

    _timer_cancelled_count: int

    def turn(self) -> None:
        asyncio._set_running_loop(self)
        try:
            self._run_once()
        finally:
            asyncio._set_running_loop(None)


# ------------------------------------------------------------------ in place of the real things

current: World  # whose time passes


class Refusal(Exception):
    """An actor's own failure, which the library is right to log."""


class _Log:
    """Keeps what the library reports as unexpected; drops the rest."""

    def debug(self, *_: Any, **__: Any) -> None:
        return

    info = warning = error = debug

    def critical(self, message: str, **values: Any) -> None:
        error = values.pop("exc_info", None)
        if not isinstance(error, BaseException):
            error = sys.exc_info()[1]
        if isinstance(error, Refusal):
            return
        current.problems.append(f"{message} {values}: {error!r}")

    exception = critical


class PromptThread:
    """A thread that has done its work when it has been started."""

    def __init__(self, target: Callable[..., None], args: Any = (), **_: Any) -> None:
        self._target, self._args = target, args

    def start(self) -> None:
        self._target(*self._args)


def _uuid4() -> uuid.UUID:
    return uuid.UUID(int=current.random.getrandbits(128), version=4)


_TIME = types.SimpleNamespace(
    monotonic=lambda: current.now_s,
    time=lambda: WALL_S + current.now_s,
    perf_counter=time.perf_counter,
)


class _Random:
    """The functions of the module ``random``, by the present world's seed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(current.random, name)


@contextmanager
def imitate(**more: dict[str, Any]) -> Iterator[None]:
    """Let the library live in worlds. ``more``: other names of modules, by the module's last name.

    Only one world's loops turn at a time.
    """
    changed: list[tuple[Any, str, Any]] = []

    def put(module: Any, name: str, value: Any) -> None:
        changed.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    for full, module in list(sys.modules.items()):
        if not full.startswith("shoal.coordination") or module is real_boottime:
            continue
        names = vars(module)
        if names.get("time") is time:
            put(module, "time", _TIME)
        if names.get("random") is random:
            put(module, "random", _Random())
        if names.get("uuid") is uuid:
            put(module, "uuid", types.SimpleNamespace(uuid4=_uuid4))
        if "log" in names and hasattr(names["log"], "exception"):
            put(module, "log", _Log())
        if callable(names.get("boottime")):
            put(module, "boottime", _TIME.monotonic)
    for full, values in more.items():
        module = sys.modules[full.replace("__", ".")]
        for name, value in values.items():
            put(module, name, value)
    try:
        yield
    finally:
        for module, name, value in reversed(changed):
            setattr(module, name, value)
