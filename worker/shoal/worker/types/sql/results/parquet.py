"""Write rows as Parquet, in row groups of bounded size.

The first rows say which type a column has, and where those are all NULL, the database. A later
value that does not fit ends the task: what is written cannot change its type.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from shoal.core.errors import shortened
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.results.files import distinct_names, library, part
from shoal.worker.types.sql.results.values import as_text
from shoal.worker.types.sql.session import Column

_BATCH = 2_048  # rows that are Python objects at a time
_GROUP_BYTES = 4 << 20  # of a row group in memory, not compressed
_GROUP_ROWS = 122_880
_INT64 = 2**63
_WIDEST = 38  # digits of a decimal


class _NoPandas(MetaPathFinder):
    """Says that pandas is not installed, for as long as the block runs."""

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *error: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise ModuleNotFoundError for pandas; look for nothing."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not imported here", name=fullname)
        return None


class ParquetWriter:
    """See files.RowWriter."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        distinct_names(columns)
        # Arrow's own allocators keep what they had: 30 MiB more. It asks when it is imported.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        self._arrow, self._parquet = library("pyarrow"), library("pyarrow.parquet")
        self._arrow.set_cpu_count(1)
        # Its first array has Arrow import pandas where that is installed, to know its types: 50 MiB
        # for what no driver returns. It looks once.
        with _NoPandas():
            self._arrow.array(())
        self._path, self._columns = path, columns
        self._rows: list[Sequence[Any]] = []
        self._batches: list[Any] = []
        self._schema: Any = None
        self._writer: Any = None
        self._count = self._group_rows = self._group_bytes = 0

    def write(self, row: Sequence[Any]) -> None:
        """See RowWriter."""
        self._rows.append(row)
        if len(self._rows) == _BATCH:
            self._batch()

    def close(self) -> None:
        """See RowWriter."""
        self._batch()
        self._group()
        self._writer.close()
        part(self._path).rename(self._path)

    def discard(self) -> None:
        """See RowWriter."""
        if self._writer is not None:
            self._writer.close()
        part(self._path).unlink(missing_ok=True)

    def _batch(self) -> None:
        """Make a batch of Arrow of the rows so far."""
        if not self._rows and self._schema is not None:
            return
        columns = list(zip(*self._rows, strict=True)) if self._rows else [()] * len(self._columns)
        if self._schema is None:
            types = [
                _type(self._arrow, column, values)
                for column, values in zip(self._columns, columns, strict=True)
            ]
            names = [column.name for column in self._columns]
            self._schema = self._arrow.schema(zip(names, types, strict=True))
            self._writer = self._parquet.ParquetWriter(
                str(part(self._path)), self._schema, compression="zstd"
            )
        arrays = [
            self._array(column, values)
            for column, values in zip(self._schema, columns, strict=True)
        ]
        batch = self._arrow.record_batch(arrays, schema=self._schema)
        self._count += len(self._rows)
        self._group_rows += len(self._rows)
        self._group_bytes += batch.nbytes
        self._batches.append(batch)
        self._rows.clear()
        if self._group_bytes >= _GROUP_BYTES or self._group_rows >= _GROUP_ROWS:
            self._group()

    def _group(self) -> None:
        """Write what is gathered as one row group."""
        if self._batches:
            self._writer.write_table(self._arrow.Table.from_batches(self._batches))
        self._batches.clear()
        self._group_rows = self._group_bytes = 0

    def _array(self, column: Any, values: Sequence[Any]) -> Any:
        if self._arrow.types.is_string(column.type):
            values = [None if value is None else as_text(value) for value in values]
        try:
            return self._arrow.array(values, type=column.type)
        except (self._arrow.ArrowException, TypeError, ValueError, OverflowError) as error:
            place = f"column {column.name[:100]!r}, rows from {self._count + 1:,} on"
            text = (
                f"{place}: a value does not fit {column.type}, as which the first rows were "
                f"written ({shortened(str(error), 200)}); cast the column in the query"
            )
            raise WorkFailed(text, permanent=True) from None


def _type(arrow: Any, column: Column, values: Sequence[Any]) -> Any:
    """Return the Arrow type of a column from its first values."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return _declared(arrow, column.type_name)
    if Decimal in kinds and kinds <= {Decimal, int}:
        return _decimal(arrow, column.type_name, values)
    if kinds == {int}:
        fits = all(-_INT64 <= value < _INT64 for value in values if value is not None)
        return arrow.int64() if fits else arrow.decimal128(_WIDEST, 0)
    if kinds <= {int, float}:
        return arrow.float64()
    if kinds == {datetime}:
        zones = {value.tzinfo is not None for value in values if value is not None}
        zoned = arrow.timestamp("us", tz="UTC") if zones == {True} else arrow.timestamp("us")
        return zoned if len(zones) == 1 else arrow.string()
    if kinds <= {bytes, bytearray, memoryview}:
        return arrow.binary()
    simple = {bool: arrow.bool_, date: arrow.date32, time: lambda: arrow.time64("us")}
    make: Callable[[], Any] = simple.get(next(iter(kinds)), arrow.string)
    return make() if len(kinds) == 1 else arrow.string()


def _decimal(arrow: Any, type_name: str, values: Sequence[Any]) -> Any:
    if declared := re.search(r"\((\d+)\s*,\s*(\d+)\)", type_name):
        digits, scale = int(declared[1]), int(declared[2])
        if digits <= _WIDEST:
            return arrow.decimal128(digits, scale)
    exponents = [value.as_tuple().exponent for value in values if isinstance(value, Decimal)]
    if not all(isinstance(exponent, int) for exponent in exponents):  # NaN, infinity
        return arrow.string()
    scale = max([0, *(-int(exponent) for exponent in exponents)])
    return arrow.decimal128(_WIDEST, scale) if scale <= _WIDEST // 2 else arrow.string()


def _declared(arrow: Any, type_name: str) -> Any:
    """Return the type of a column that has only NULL so far."""
    name = type_name.lower()
    if re.match(r"(tiny|small|medium|big)?int(eger|\d)?\b|long\b|short\b|serial", name):
        return arrow.int64()
    if re.match(r"float|double|real", name):
        return arrow.float64()
    if re.match(r"bool", name):
        return arrow.bool_()
    if re.match(r"date$", name):
        return arrow.date32()
    if re.match(r"numeric|decimal", name):
        return _decimal(arrow, type_name, ())
    return arrow.string()
