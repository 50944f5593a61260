"""How many intervals of a key overlap at most, by a sweep over their starts and ends."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_TIME_BITS = 33  # of microseconds: more than two hours
_MOST_KEYS = 1 << (63 - _TIME_BITS - 1)


def highest(keys: Ints, starts: Ints, ends: Ints, count: int) -> Ints:
    """Return for each key 0 … ``count`` - 1 how many of its intervals overlap at most.

    Intervals are half open, so one that begins when another ends does not overlap it, and an empty
    one counts nothing. Times are microseconds from 0 to below 2**33. O(n log n).
    """
    if count > _MOST_KEYS:
        raise ValueError(f"{count} keys in one sweep, at most {_MOST_KEYS}")
    lasting = ends > starts
    keys, starts, ends = keys[lasting], starts[lasting], ends[lasting]
    found = np.zeros(count, dtype=np.int64)
    if not len(keys):
        return found
    # One number is an event: its key, its time, and last whether it is a start. So one sort of
    # integers has all of them in order, and at one time ends before starts.
    base = keys << (_TIME_BITS + 1)
    events = np.concatenate([base | (starts << 1) | 1, base | (ends << 1)])
    events.sort()
    levels = np.cumsum(((events & 1) << 1) - 1)  # each key comes back to 0
    owners = events >> (_TIME_BITS + 1)
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    found[owners[firsts]] = np.maximum.reduceat(levels, firsts)
    return found


def totals(keys: Ints, starts: Ints, ends: Ints, count: int) -> Ints:
    """Return for each key the sum of the lengths of its intervals."""
    lengths = np.maximum(ends - starts, 0)
    # A sum of floats is exact up to 2**53 microseconds, 2.5 million hours; bincount knows no other.
    if int(lengths.sum()) < 1 << 53:
        return np.bincount(keys, lengths, count).astype(np.int64)
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, keys, lengths)
    return found
