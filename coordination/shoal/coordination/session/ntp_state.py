"""Whether the kernel's wall clock is kept right by a time service (NTP, PTP), as the kernel knows.

A clock that is set by hand counts as unsynchronised until a time service has adjusted it again
(``STA_UNSYNC`` in adjtimex(2)). Reading that needs no privileges.
"""

import ctypes
from functools import cache
from typing import Any

_NOT_SYNCHRONISED = 5  # TIME_ERROR
_FAILED = -1
_SIZE = 512  # bytes; more than ``struct timex`` has anywhere. Zeros: nothing is to be set


@cache
def _adjtimex() -> Any:
    return getattr(ctypes.CDLL(None), "adjtimex", None)


def is_synchronised() -> bool:
    """Return whether a time service keeps the clock. Where the kernel does not say: True."""
    call = _adjtimex()
    if call is None:
        return True
    return int(call(ctypes.create_string_buffer(_SIZE))) not in (_NOT_SYNCHRONISED, _FAILED)
