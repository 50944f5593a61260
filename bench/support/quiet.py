"""Logging for benchmarks: warnings only, and never between the figures."""

import logging
import sys

import structlog


def log_warnings_to_stderr() -> None:
    """Standard output belongs to results."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
