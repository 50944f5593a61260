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
    ordered = _ordered(keys, values, count)
    sizes = np.bincount(keys, minlength=count).astype(np.int64)
    firsts = np.cumsum(sizes) - sizes
    found = np.full((len(levels), count), np.nan)
    filled = sizes > 0
    for row, level in enumerate(levels):
        place = level * (sizes[filled] - 1)
        below = np.floor(place).astype(np.int64)
        above = np.ceil(place).astype(np.int64)
        low = ordered[firsts[filled] + below]
        high = ordered[firsts[filled] + above]
        found[row, filled] = low + (high - low) * (place - below)
    return sizes, found


def deviations(keys: Ints, values: Numbers, medians: Numbers) -> Numbers:
    """Return the median absolute deviation from the median of each key (MAD)."""
    apart = np.abs(values - medians[keys])
    if _units(values) is not None and _units(medians) is not None:
        apart = np.rint(apart * _UNITS) / _UNITS  # exact but for the last bits of a difference
    _, (found,) = quantiles(keys, apart, len(medians), (0.5,))
    return np.asarray(found)


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
            return np.asarray((packed & ((1 << width) - 1)) / _UNITS)
    return np.asarray(values[np.lexsort((values, keys))])


def _units(values: Numbers) -> Ints | None:
    """Return values as halves of microseconds, NaN as 0; None: some are no times."""
    with np.errstate(all="ignore"):
        units = np.rint(np.nan_to_num(values) * _UNITS)
        if len(units) and np.abs(units).max() >= _MOST_UNITS:
            return None
        same = (units / _UNITS == values) | np.isnan(values)
    return units.astype(np.int64) if same.all() else None
