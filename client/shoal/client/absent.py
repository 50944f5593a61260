"""Leave out what a library takes along where it is installed, and does without where it is not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import cast


@contextmanager
def absent(name: str) -> Iterator[None]:
    """Let ``import name`` fail as if it were not installed, unless it is loaded already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = cast(ModuleType, None)  # how the import system says "not to be found"
    try:
        yield
    finally:
        del sys.modules[name]
