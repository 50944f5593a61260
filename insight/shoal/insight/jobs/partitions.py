"""The rows of a partition, as functions on whole partitions get them."""

from collections.abc import Iterator

import pyarrow as pa


def whole(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    """Return the rows of a partition; None: it has none, and perhaps no batch either."""
    given = list(batches)
    return pa.Table.from_batches(given) if any(one.num_rows for one in given) else None
