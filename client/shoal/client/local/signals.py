"""Stopping a foreground program: in order at the first signal, at once at the second."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopFlag:
    """Set by the first SIGINT or SIGTERM; the second one raises KeyboardInterrupt."""

    is_set: bool = False


@contextmanager
def stop_signals() -> Iterator[StopFlag]:
    """Catch SIGINT and SIGTERM for the block. Main thread only."""
    flag = StopFlag()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if flag.is_set:
            raise KeyboardInterrupt
        flag.is_set = True

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
