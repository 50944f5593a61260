"""structlog without rich, which it takes along where that is installed.

That would be 6 MB and 0.1 s in each process of a cluster, for coloured tracebacks that nobody
sees. Import this before anything that imports structlog.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import cast


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
        del sys.modules[name]


with _absent("rich"):
    import structlog as structlog
