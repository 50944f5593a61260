"""Where the log lines of a process go: one line per event, to standard error."""

import logging
import sys
from typing import Literal

import structlog


def configure_logging(
    level: Literal["debug", "info", "warning", "error"], form: Literal["text", "json"] = "text"
) -> None:
    """Set up structlog for Shoal's own lines and ``logging`` for those of libraries.

    Libraries speak from warning on, whatever the level.
    """
    lowest = getattr(logging, level.upper())
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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(
        level=max(lowest, logging.WARNING),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
