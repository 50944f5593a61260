"""Percentiles of groups, all groups at once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Numbers = NDArray[np.float64]

#: Times are whole microseconds, so medians of them are whole halves.
_UNITS = 2_000_000.0
_MOST_UNITS = float(1 << 52)  # to here each whole number has a float of its own
_BITS = 63


def quantiles(
    keys: Ints, values: Numbers, count: int, levels: Sequence[float]
) -> tuple[Ints, Numbers]:
    """Return for each key 0 … ``count`` - 1 how many values it has, and its quantiles.

    The quantiles are levels x keys, interpolated between neighbours, NaN without a value. Values
    that are NaN are none. O(n log n).
    """
    known = ~np.isnan(values)
    if not known.all():
        keys, values = keys[known], values[known]
    sizes = np.bincount(keys, minlength=count)
    return sizes, _quantiles(_ordered(keys, values, count), sizes, levels)


def spreads(
    keys: Ints, values: Numbers, count: int, levels: Sequence[float]
) -> tuple[Ints, Numbers, Numbers]:
    """Return what ``quantiles`` does, and the median absolute deviations from the medians (MAD).

    ``levels`` begin with 0.5. No value is NaN.
    """
    sizes = np.bincount(keys, minlength=count)
    ordered = _ordered(keys, values, count)
    found = _quantiles(ordered, sizes, levels)
    apart = np.abs(ordered - np.repeat(found[0], sizes))
    if _units(ordered) is not None:
        apart = np.rint(apart * _UNITS) / _UNITS  # exact but for the last bits of a difference
    again = _ordered(np.repeat(np.arange(count), sizes), apart, count)
    return sizes, found, _quantiles(again, sizes, (0.5,))[0]


def _quantiles(ordered: Numbers, sizes: Ints, levels: Sequence[float]) -> Numbers:
    """Return quantiles, levels x keys, of values in the order of ``_ordered``."""
    firsts = np.cumsum(sizes) - sizes
    found = np.full((len(levels), len(sizes)), np.nan)
    filled = sizes > 0
    for row, level in enumerate(levels):
        place = level * (sizes[filled] - 1)
        below = place.astype(np.int64)
        above = np.ceil(place).astype(np.int64)
        low = ordered[firsts[filled] + below]
        high = ordered[firsts[filled] + above]
        found[row, filled] = low + (high - low) * (place - below)
    return found


def _ordered(keys: Ints, values: Numbers, count: int) -> Numbers:
    """Return the values in the order of keys, and of values within a key.

    Where values are times that are not negative, a key and a value are one integer: a sort of
    integers takes a tenth of the time of one by two columns.
    """
    units = _units(values)
    if units is not None and len(units):
        width = int(units.max()).bit_length()
        if units.min() >= 0 and count.bit_length() + width <= _BITS:
            packed = (keys << width) | units
            packed.sort()
            packed &= (1 << width) - 1
            return np.asarray(packed / _UNITS)
    return np.asarray(values[np.lexsort((values, keys))])


def _units(values: Numbers) -> Ints | None:
    """Return values as halves of microseconds; None: some are not times."""
    if len(values) and not np.abs(values).max() < _MOST_UNITS / _UNITS:
        return None
    units = np.rint(values * _UNITS)
    return units.astype(np.int64) if (units / _UNITS == values).all() else None
