"""TLS on both event loops: roles run on uvloop, whose transports are not those of asyncio."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

_ASYNCIO = {"asyncio": asyncio.new_event_loop}
_BOTH = {**_ASYNCIO, "uvloop": uvloop.new_event_loop}


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the loops that a test runs on: both if it uses the ``tls`` fixture."""
    return _BOTH if "tls" in getattr(item, "fixturenames", ()) else _ASYNCIO
