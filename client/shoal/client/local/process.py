"""What a process of Shoal arranges for itself: its log, its end by signals, garbage collection.

Garbage is collected in pieces: while Python looks for it, every thread stands still. Python looks
for cycles among all objects, again and again. In a master with a million attempts that takes a
tenth of a second and more. So objects that survive a long collection are frozen, and the next one
only looks at newer objects. Frozen objects are freed as all others when nothing refers to them; but
a cycle of them stays, so once in a while everything is looked through.

An API works on large requests in threads. Its event loop needs the interpreter several times for
each request of others, and each time Python lets it wait for 5 ms. ``shorten_thread_turns`` makes
that half a millisecond.
"""

import gc
import logging
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Literal, TextIO, cast

from shoal.client.libraries import structlog

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

_LONG_S = 0.01  # of processor time: some 100,000 objects
_THOROUGH_S = 3600.0  # at least, from one look at everything to the next
_THREAD_TURN_S = 0.0005


class GarbageCollector:
    """Told by Python of each collection."""

    def __init__(self) -> None:
        self._began_s = 0.0  # in the thread's processor time
        self._thorough_s = time.monotonic()
        self._is_thorough = False  # the collection to come

    def __call__(self, moment: str, info: Mapping[str, int]) -> None:
        """Called by whichever thread collects; there is one collection at a time."""
        if moment == "start":
            self._began_s = time.thread_time()
            return
        if info["generation"] < 2:
            return
        if self._is_thorough:
            self._is_thorough = False
            gc.freeze()
        elif time.thread_time() - self._began_s > _LONG_S:
            gc.freeze()
            if time.monotonic() - self._thorough_s > _THOROUGH_S:
                self._thorough_s = time.monotonic()
                self._is_thorough = True
                gc.unfreeze()


@contextmanager
def no_collections() -> Iterator[None]:
    """Collect nothing while modules are imported.

    Imports make hundreds of thousands of objects and hardly any garbage, so that collections take
    up to a fifth of the processor time of a start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def collect_in_pieces() -> None:
    """Freeze what there is, and from now on what long collections leave."""
    gc.freeze()
    gc.callbacks.append(GarbageCollector())


def shorten_thread_turns() -> None:
    """Let a thread that works in Python pass the interpreter on after ``_THREAD_TURN_S``."""
    sys.setswitchinterval(_THREAD_TURN_S)


EVENT_WIDTH = 30  # characters; what belongs to an event begins in the same column
_SEPARATORS = frozenset(" =\"'\\")


class Unfailing:
    """A text stream that loses what cannot be written.

    On a full disk, or a closed pipe, a log line must not fail the work that it is about.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write ``text`` if that is possible."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Pass on what can be passed on."""
        with suppress(OSError):
            self._stream.flush()


def configure_logging(
    level: Literal["debug", "info", "warning", "error"], form: Literal["text", "json"] = "text"
) -> None:
    """Set up structlog for Shoal's own lines and ``logging`` for those of libraries.

    Libraries log from warning on, whatever the level.
    """
    lowest = getattr(logging, level.upper())
    stream: TextIO = cast("TextIO", Unfailing(sys.stderr))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,  # the request that a line is about
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_renderers(form),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=structlog.WriteLoggerFactory(stream),
    )
    logging.basicConfig(
        level=max(lowest, logging.WARNING),
        stream=stream,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )


def _renderers(form: Literal["text", "json"]) -> "list[Processor]":
    """Return what turns an event into its line."""
    if form == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    if sys.stderr.isatty():
        # The default formatter shows the values of local variables, which may be secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    return [structlog.processors.format_exc_info, render_plain]


def render_plain(_logger: object, _method: str, event: "EventDict") -> str:
    """Return the line that ConsoleRenderer makes for a file, at a fraction of the cost."""
    timestamp, level, text = event.pop("timestamp"), event.pop("level"), event.pop("event")
    exception = event.pop("exception", None)
    fields = [f" {name}={_shown(event[name])}" for name in sorted(event)]
    line = f"{timestamp} [{level:<9}] {text:<{EVENT_WIDTH}}{''.join(fields)}".rstrip()
    return f"{line}\n{exception}" if exception else line


def _shown(value: object) -> str:
    """Return ``value``, in quotes unless its begin and end are clear without."""
    plain = isinstance(value, str) and value.isprintable() and _SEPARATORS.isdisjoint(value)
    return str(value) if plain else repr(value)


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
