"""Fixtures that every test may use, and what holds for all property tests."""

import gc
import os
import signal

import pytest
import structlog
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.support")
pytest_plugins = [
    "tests.support.database.postgresql",
    "tests.support.database.databases",
    "tests.support.spark.classes",
    "tests.support.zookeeper.server",
]

# Every run tries the same examples and none is timed: the result depends on the code alone.
# ``--hypothesis-profile=default`` searches further.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

# As processes do. The default renders tracebacks with all local variables, which takes seconds in
# which an event loop stands still.
_PLAIN = structlog.dev.ConsoleRenderer(
    colors=False, exception_formatter=structlog.dev.plain_traceback
)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _PLAIN])

# It takes a processor for a minute, beside all tests that use Spark.
os.environ.setdefault("SHOAL_WORKER_SPARK_CLASS_ARCHIVE", "false")

# A shell has what it runs in the background ignore interrupts, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Spare the garbage collector modules and tests, which live to the end: a fifth of the time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the collector have all of it: DuckDB complains on its way out of what is left."""
    gc.unfreeze()
