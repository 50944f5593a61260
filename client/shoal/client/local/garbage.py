"""Collect garbage in pieces: while Python looks for it, every thread stands still.

Python looks for cycles among all that lives, again and again. In a master with a million attempts
that takes a tenth of a second and more. So what survives a long look is frozen: the next one is
about what came later. Frozen objects go as all others do when nobody refers to them; but a cycle
of them stays, so once in a while everything is looked through.
"""

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_LONG_S = 0.01  # of processor time: some 100,000 objects
_THOROUGH_S = 3600.0  # at least, from one look at everything to the next


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
