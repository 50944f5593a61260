"""Counts, sums and exact percentiles of groups: all groups of a part at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.columns import optional
from shoal.insight.jobs.kernels.arrays import Flags, groups, taken
from shoal.insight.jobs.kernels.statistics import Ints, Numbers, quantiles


@dataclass(frozen=True)
class GroupSummary:
    """The totals of each group of rows.

    ``keys``: columns that name a group. ``counts``: of what is true or false, how many are true.
    ``spreads``: percentiles, which become ``<name>_p50`` …, ``<name>_mean``, ``<name>_max``.
    ``sums``, ``highest``: of numbers; NULL if all of a group are.
    """

    keys: Mapping[str, pa.DataType]
    counts: Sequence[str]
    spreads: Mapping[str, Sequence[int]]
    sums: Sequence[str] = ()
    highest: Sequence[str] = field(default=())

    @property
    def schema(self) -> pa.Schema:
        """Of the result."""
        spreads = [
            f"{name}_{what}"
            for name, levels in self.spreads.items()
            for what in (*(f"p{level}" for level in levels), "mean", "max")
        ]
        return pa.schema(
            [
                *self.keys.items(),
                *((name, pa.int64()) for name in self.counts),
                *((name, pa.float64()) for name in (*spreads, *self.sums)),
                *((name, pa.int64()) for name in self.highest),
            ]
        )

    def of(
        self, rows: pa.Table, flags: Mapping[str, Flags], values: Mapping[str, Numbers]
    ) -> pa.Table:
        """Return a row for each group.

        ``flags``: for each of ``counts``; ``values``: for each of ``spreads``, ``sums``,
        ``highest``, NaN where there is none.
        """
        first, code = groups(rows, list(self.keys))
        count = len(first)
        columns = [taken(rows, name, first) for name in self.keys]
        columns += [
            pa.array(np.bincount(code[flags[name]], minlength=count)) for name in self.counts
        ]
        for name, levels in self.spreads.items():
            at = [level / 100 for level in levels]
            sizes, found = quantiles(code, values[name], count, [*at, 1.0])
            total = _sums(code, values[name], count)
            mean = np.divide(total, sizes, out=np.full(count, np.nan), where=sizes > 0)
            columns += [optional(one) for one in (*found[:-1], mean, found[-1])]
        for name in self.sums:
            none = np.bincount(code[~np.isnan(values[name])], minlength=count) == 0
            columns.append(pa.array(_sums(code, values[name], count), mask=none))
        for name in self.highest:
            most = np.full(count, -np.inf)
            np.fmax.at(most, code, values[name])
            none = np.isneginf(most)
            columns.append(pa.array(np.where(none, 0, most), mask=none).cast(pa.int64()))
        return pa.Table.from_arrays(columns, schema=self.schema)


def _sums(code: Ints, values: Numbers, count: int) -> Numbers:
    return np.asarray(np.bincount(code, np.nan_to_num(values), count), dtype=np.float64)
