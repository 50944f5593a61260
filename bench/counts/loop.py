"""Count how often the event loop wakes for roles, and how much Python it then runs.

Processor time without a clock: the same code makes the same calls on every machine.
"""

import asyncio
import contextvars
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from cProfile import Profile
from typing import Any
from unittest import mock

WAKE_UPS, PYTHON_CALLS = "wake-ups", "Python calls"
MASTER, AGENT, ALERT_SERVER = "master", "worker agent", "alert server"
#: What no role has begun: answers of ZooKeeper and of gRPC, which come from threads.
ANSWERS = "answers"
_UNCOUNTED, _ALL = "nobody", ""

_role = contextvars.ContextVar("role", default=ANSWERS)


def start_role(name: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Start a task; what the loop runs for it, and for all that it starts, counts for ``name``."""
    context = contextvars.copy_context()
    context.run(_role.set, name)
    return asyncio.create_task(work, context=context)


@contextmanager
def of_nobody() -> Iterator[None]:
    """Leave out what the loop runs for who measures."""
    token = _role.set(_UNCOUNTED)
    try:
        yield
    finally:
        _role.reset(token)


class LoopCounts:
    """What the loop has done so far, for each role and for all of them."""

    def __init__(self) -> None:
        self._wake_ups: Counter[str] = Counter()
        self._profiles: dict[str, Profile] = {}
        self._woken: set[str] = set()  # in this turn of the loop

    def now(self) -> Counter[str]:
        """Return the counts since the start, in all and by role. Calls of C are not counted."""
        found: Counter[str] = Counter()
        for role, number in self._wake_ups.items():
            found[f"{WAKE_UPS}: {role}" if role else WAKE_UPS] = number
        for role, profile in self._profiles.items():
            calls = sum(one.callcount for one in profile.getstats())
            found[f"{PYTHON_CALLS}: {role}"] = calls
            found[PYTHON_CALLS] += calls
        return found

    def woke(self) -> None:
        """Note that the loop begins another turn."""
        self._woken.clear()

    def run(self, role: str, step: Callable[[], None]) -> None:
        """Run a callback of the loop."""
        if role not in self._woken:
            self._wake_ups.update({role, _ALL} - self._woken)
            self._woken.update({role, _ALL})
        if (profile := self._profiles.get(role)) is None:
            profile = self._profiles[role] = Profile(subcalls=False, builtins=False)
        profile.enable()
        try:
            step()
        finally:
            profile.disable()


@contextmanager
def counting_turns() -> Iterator[LoopCounts]:
    """Count what asyncio's own loop does in the block. Only one block at a time."""
    counts = LoopCounts()
    step: Callable[[asyncio.Handle], None] = asyncio.Handle._run
    turn: Callable[[Any], None] = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]

    def counted_step(handle: asyncio.Handle) -> None:
        role = handle._context.get(_role, ANSWERS)  # type: ignore[attr-defined]
        if role is _UNCOUNTED:
            step(handle)
        else:
            counts.run(role, lambda: step(handle))

    def counted_turn(loop: Any) -> None:
        counts.woke()
        turn(loop)

    with (
        mock.patch.object(asyncio.Handle, "_run", counted_step),
        mock.patch.object(asyncio.BaseEventLoop, "_run_once", counted_turn),
    ):
        yield counts
