"""The rows of a partition, from the Arrow batches in which Spark passes them to Python."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.kernels.grouped import Ints, Numbers


def whole(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """Return all rows of a partition as one table; None: it has none, often not even a batch."""
    filled = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(filled).combine_chunks() if filled else None


def codes(table: pa.Table, keys: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the first row of each group of equal keys, and the group of each row."""
    code = np.zeros(table.num_rows, dtype=np.int64)
    for name in keys:
        coded = table[name].combine_chunks().dictionary_encode()
        code = code * len(coded.dictionary) + coded.indices.to_numpy()
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return first, group


def numbers(table: pa.Table, name: str) -> Numbers:
    """Return a column of numbers, with NaN for NULL."""
    return np.asarray(table[name].to_numpy(), dtype=np.float64)
