"""Columns of Arrow tables as arrays of NumPy.

Texts are dictionaries of values with an integer for each row, so rows are grouped and compared by
integers.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.insight.jobs.kernels.statistics import Ints, Numbers

Flags = NDArray[np.bool_]
_DENSE = 4  # places for each row that a table of all possible codes may have


def ints(table: pa.Table, name: str, missing: int = 0) -> Ints:
    """Return a column of integers; ``missing`` where it is NULL."""
    column = _one(table, name)
    if column.null_count:
        column = pc.fill_null(column, missing)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def flags(table: pa.Table, name: str) -> Flags:
    """Return a column of true and false that has no NULL."""
    return np.asarray(_one(table, name).to_numpy(zero_copy_only=False), dtype=np.bool_)


def is_there(table: pa.Table, name: str) -> Flags:
    """Return which rows have a value in a column."""
    column = _one(table, name)
    if not column.null_count:
        return np.ones(len(column), dtype=bool)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def numbers(table: pa.Table, name: str) -> Numbers:
    """Return a column of numbers, with NaN for NULL."""
    return np.asarray(_one(table, name).to_numpy(zero_copy_only=False), dtype=np.float64)


def coded(table: pa.Table, name: str) -> tuple[Ints, pa.Array]:
    """Return the code of each row of a column, -1 where it is NULL, and the value of each code."""
    column = _one(table, name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices
    if indices.null_count:
        indices = pc.fill_null(indices, -1)
    return indices.to_numpy(zero_copy_only=False).astype(np.int64), column.dictionary


def is_one_of(table: pa.Table, name: str, *texts: str) -> Flags:
    """Return which rows have one of some texts in a column."""
    codes, values = coded(table, name)
    wanted = pc.is_in(values, value_set=pa.array(texts, pa.string())).to_numpy(zero_copy_only=False)
    # The last place is that of NULL, whose code is -1.
    return np.asarray(np.append(wanted, False)[codes])


def groups(table: pa.Table, keys: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the first row of each group of equal keys, and the group of each row.

    Groups are numbered in the order of their codes, not of their texts.
    """
    code, size = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in keys:
        codes, values = coded(table, name)
        code, size = compressed(code * (len(values) + 1) + codes + 1, size * (len(values) + 1))
    first = np.zeros(size, dtype=np.int64)
    first[code[::-1]] = np.arange(table.num_rows)[::-1]
    return first, code


def compressed(codes: Ints, size: int) -> tuple[Ints, int]:
    """Number the codes (0 … ``size`` - 1) that occur from 0 on, in order; return also how many."""
    if size <= _DENSE * len(codes) + 1024:
        occurs = np.zeros(size, dtype=bool)
        occurs[codes] = True
        places = np.cumsum(occurs) - 1
        return places[codes], int(occurs.sum())
    found, numbered = np.unique(codes, return_inverse=True)
    return numbered.astype(np.int64), len(found)


def taken(table: pa.Table, name: str, rows: Ints) -> pa.Array:
    """Return the values of a column in some rows, texts as texts."""
    column = _one(table, name).take(pa.array(rows))
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _one(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
