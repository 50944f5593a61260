"""Where the log lines of a process go: one line per event, to standard error."""

import logging
import sys
from contextlib import suppress
from typing import Literal, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

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


def _renderers(form: Literal["text", "json"]) -> list[Processor]:
    """Return what turns an event into its line."""
    if form == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    if sys.stderr.isatty():
        # The default formatter shows the values of local variables, which may be secrets.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    return [structlog.processors.format_exc_info, render_plain]


def render_plain(_logger: object, _method: str, event: EventDict) -> str:
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
