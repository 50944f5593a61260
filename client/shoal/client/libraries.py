"""Third-party libraries without the optional parts that cost time and memory to import.

httpx comes without its own command line, which takes click, rich and pygments along: more than
half of what it costs to import, a third of the processor time of a command that sends one request.
structlog comes without rich, which it uses for coloured tracebacks if it is installed: 6 MB and
0.1 s in each process of a cluster. Import both from here, before anything else imports them. Each
is loaded on its first use.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import httpx as httpx
    import structlog as structlog

_LEFT_OUT = {"httpx": "httpx._main", "structlog": "rich"}


def __getattr__(name: str) -> ModuleType:
    if name not in _LEFT_OUT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _absent(_LEFT_OUT[name]):
        # Kept, so that a later import hides nothing from another thread's imports.
        globals()[name] = module = import_module(name)
    return module


@contextmanager
def _absent(name: str) -> Iterator[None]:
    """Let ``import name`` fail as if it were not installed, unless it is loaded already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = cast(ModuleType, None)  # how the import system says "not to be found"
    try:
        yield
    finally:
        sys.modules.pop(name, None)  # another thread's first use may have removed it already
