"""Where the log lines of a process go: one line per event, to standard error."""

import logging
import sys
from contextlib import suppress
from typing import Literal, TextIO, cast

import structlog


class Unfailing:
    """A text stream that loses what cannot be written.

    On a full disk, or with nobody reading, a log line must not fail the work it tells of.
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

    Libraries speak from warning on, whatever the level.
    """
    lowest = getattr(logging, level.upper())
    stream: TextIO = cast("TextIO", Unfailing(sys.stderr))
    as_json: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
    as_text: list[structlog.typing.Processor] = [
        # The default formatter shows the values of local variables, which may be secrets.
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(as_json if form == "json" else as_text),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=structlog.PrintLoggerFactory(stream),
    )
    logging.basicConfig(
        level=max(lowest, logging.WARNING),
        stream=stream,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
