"""Percentiles of groups, all groups at once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Numbers = NDArray[np.float64]


def quantiles(
    keys: Ints, values: Numbers, count: int, levels: Sequence[float]
) -> tuple[Ints, Numbers]:
    """Return for each key 0 … ``count`` - 1 how many values it has, and its quantiles.

    The quantiles are levels x keys, interpolated between neighbours, NaN without a value. Values
    that are NaN are none. O(n log n).
    """
    known = ~np.isnan(values)
    keys, values = keys[known], values[known]
    order = np.lexsort((values, keys))
    ordered = values[order]
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
    _, (found,) = quantiles(keys, apart, len(medians), (0.5,))
    return np.asarray(found)
