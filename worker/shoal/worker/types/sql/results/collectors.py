"""Rows become outputs or a file; what cannot be an output is refused before anything is committed.

A collector takes the columns, then row after row. ``add`` returns False when no more are wanted.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from shoal.core.definition.parameters import reserved_parameter
from shoal.worker.supervisor.shim.outputs import LONGEST_VALUE, MOST, MOST_BYTES, NAME
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.results.files import CsvWriter, RowWriter, XlsxWriter, distinct_names
from shoal.worker.types.sql.results.values import as_json, as_text
from shoal.worker.types.sql.session import Column
from shoal.worker.types.sql.sql import FileFormat, OnMore, ResultKind, SqlParams

Outputs = Mapping[str, str]


class Collector(Protocol):
    """What becomes of the rows of a result."""

    def start(self, columns: Sequence[Column]) -> None:
        """Take the columns. Raises WorkFailed."""
        ...

    def add(self, row: Sequence[Any]) -> bool:
        """Take a row; return whether more are wanted. Raises WorkFailed."""
        ...

    def finish(self) -> Outputs:
        """Return the outputs. Raises WorkFailed."""
        ...

    def discard(self) -> None:
        """Leave nothing of the rows."""
        ...


def collector(params: SqlParams, folder: Path) -> Collector:
    """Return the collector that the params ask for. Files are written into ``folder``."""
    limit = _Limit(params.row_limit, truncates=params.on_more is OnMore.TRUNCATE)
    match params.result:
        case ResultKind.VALUE | ResultKind.ROW:
            return _OneRow(params.result)
        case ResultKind.ROWS:
            return _RowCollector(limit)
        case ResultKind.FILE:
            return _File(folder / params.file_name, limit)
        case _:
            return Nothing()


def open_writer(path: Path, columns: Sequence[Column]) -> RowWriter:
    """Return a writer of the format that the end of the name says. Raises WorkFailed, OSError."""
    match FileFormat(path.suffix[1:]):
        case FileFormat.CSV:
            return CsvWriter(path, columns)
        case FileFormat.XLSX:
            return XlsxWriter(path, columns)
        case FileFormat.PARQUET:
            from shoal.worker.types.sql.results.parquet import ParquetWriter

            return ParquetWriter(path, columns)


def rows_into(most: int, *, truncates: bool) -> Collector:
    """Return a collector of at most so many rows as a JSON list."""
    return _RowCollector(_Limit(most, truncates=truncates))


def check_outputs(outputs: Outputs) -> None:
    """Raise WorkFailed if these cannot be the outputs of a task."""
    for name, value in outputs.items():
        if not re.fullmatch(NAME, name) or reserved_parameter(name):
            text = f"the column {name[:100]!r} cannot be an output; name it with AS"
            raise WorkFailed(text, permanent=True)
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            raise WorkFailed(f"{name} holds half of a character", permanent=True) from None
        if "\0" in value:
            raise WorkFailed(f"{name} holds a NUL character, no output can", permanent=True)
        if size > LONGEST_VALUE:
            text = f"{name} has {size:,} bytes, an output has at most {LONGEST_VALUE:,}; {_INSTEAD}"
            raise WorkFailed(text, permanent=True)
    size = sum(len(name) + len(value.encode()) for name, value in outputs.items())
    if size > MOST_BYTES or len(outputs) > MOST:
        text = (
            f"{len(outputs)} outputs with {size:,} bytes are too many: at most {MOST:,} with "
            f"{MOST_BYTES:,} bytes; {_INSTEAD}"
        )
        raise WorkFailed(text, permanent=True)


_INSTEAD = "choose fewer rows or columns, or `result: file`"


class Nothing:
    """Rows that are not kept."""

    def start(self, columns: Sequence[Column]) -> None:
        """See Collector."""

    def add(self, row: Sequence[Any]) -> bool:
        """See Collector."""
        return True

    def finish(self) -> Outputs:
        """See Collector."""
        return {}

    def discard(self) -> None:
        """See Collector."""


class _OneRow(Nothing):
    def __init__(self, kind: ResultKind) -> None:
        self._kind = kind
        self._names: list[str] = []
        self._row: Sequence[Any] | None = None

    def start(self, columns: Sequence[Column]) -> None:
        self._names = distinct_names(columns)
        if self._kind is ResultKind.VALUE and len(columns) != 1:
            text = f"`result: value` wants one column, there are {len(columns)}: {_listed(columns)}"
            raise WorkFailed(text, permanent=True)

    def add(self, row: Sequence[Any]) -> bool:
        if self._row is not None:
            text = f"`result: {self._kind}` wants one row, there are more; aggregate, or take rows"
            raise WorkFailed(text)
        self._row = row
        return True

    def finish(self) -> Outputs:
        if self._row is None:
            raise WorkFailed(f"`result: {self._kind}` wants one row, there is none")
        names = ["value"] if self._kind is ResultKind.VALUE else self._names
        return {name: as_text(value) for name, value in zip(names, self._row, strict=True)}


class _Limit:
    """How many rows are wanted, and what happens when there are more."""

    def __init__(self, most: int | None, *, truncates: bool) -> None:
        self._most, self._truncates = most, truncates
        self.count = 0
        self.truncated = False

    def takes(self) -> bool:
        """Count a row; return whether it is wanted. Raises WorkFailed."""
        if self._most is not None and self.count >= self._most:
            return self.overflow(f"more than {self._most:,} rows (`max_rows`)")
        self.count += 1
        return True

    def overflow(self, what: str) -> bool:
        """Return False if the result ends here. Raises WorkFailed if it must be whole."""
        if not self._truncates:
            hint = "`on_more: truncate` keeps the first ones, `result: file` has room for all"
            raise WorkFailed(f"the result has {what}; {hint}", permanent=True)
        self.truncated = True
        return False


class _RowCollector(Nothing):
    def __init__(self, limit: _Limit) -> None:
        self._limit = limit
        self._names: list[str] = []
        self._rows: list[str] = []
        self._size = 2  # bytes of the list as JSON

    def start(self, columns: Sequence[Column]) -> None:
        self._names = distinct_names(columns)

    def add(self, row: Sequence[Any]) -> bool:
        if not self._limit.takes():
            return False
        fields = dict(zip(self._names, map(as_json, row), strict=True))
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        self._size += len(text.encode("utf-8", "surrogatepass")) + 1
        if self._size > LONGEST_VALUE:
            return self._limit.overflow(f"more than {LONGEST_VALUE:,} bytes as JSON")
        self._rows.append(text)
        return True

    def finish(self) -> Outputs:
        rows = "[" + ",".join(self._rows) + "]"
        return {"rows": rows, "truncated": as_text(self._limit.truncated)}


class _File:
    def __init__(self, path: Path, limit: _Limit) -> None:
        self._path, self._limit = path, limit
        self._writer: RowWriter | None = None

    def start(self, columns: Sequence[Column]) -> None:
        self._writer = open_writer(self._path, columns)

    def add(self, row: Sequence[Any]) -> bool:
        assert self._writer is not None
        if not self._limit.takes():
            return False
        self._writer.write(row)
        return True

    def finish(self) -> Outputs:
        assert self._writer is not None
        self._writer.close()
        self._writer = None
        truncated = as_text(self._limit.truncated)
        return {"file": self._path.name, "truncated": truncated}

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.discard()


def _listed(columns: Sequence[Column]) -> str:
    shown = ", ".join(column.name[:50] for column in columns[:10])
    return shown + (", …" if len(columns) > 10 else "")
