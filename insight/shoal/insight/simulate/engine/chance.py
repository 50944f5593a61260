"""Chance that can be repeated: numbers that follow from a seed and from names.

Each draw depends on what it is for and on nothing that was drawn before it. So the same task of
the same run takes equally long whatever else is changed, and two simulations differ by the change
alone.
"""

import hashlib
from collections.abc import Sequence

_MASK = (1 << 64) - 1


def key_of(text: str) -> int:
    """Return a name as 64 bits, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def mixed(*parts: int) -> int:
    """Return 64 bits that depend on all of ``parts`` (SplitMix64 over each)."""
    state = 0
    for part in parts:
        state = ((state ^ (part & _MASK)) + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def share(bits: int) -> float:
    """Return 64 bits as a number from 0 to 1, 1 excluded."""
    return (bits >> 11) / (1 << 53)


def quantile(ordered: Sequence[float], at: float) -> float:
    """Return the quantile of ascending values, between two of them in proportion.

    ``at`` is from 0 to 1. Hyndman and Fan's type 7. ``ordered`` is not empty.
    """
    place = at * (len(ordered) - 1)
    low = int(place)
    if low + 1 >= len(ordered):
        return ordered[-1]
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])
