"""Write rows into files: CSV and XLSX here, Parquet in ``parquet``; all in bounded memory.

A cell that begins with ``=``, ``+``, ``-`` or ``@`` would be a formula to those who open the file.
In CSV such a text gets a ``'`` in front, in XLSX it is marked as text; plain numbers stay.
"""

import csv
import importlib
import math
import re
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.results.values import as_text
from shoal.worker.types.sql.session import Column

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_MOST_COLUMNS, _LONGEST_CELL = 16_384, 32_767  # of Excel
_MOST_DIGITS = 15  # of a number in Excel
_FIRST_DAY = date(1900, 3, 1)  # before it Excel counts days in its own way


class RowWriter(Protocol):
    """A file that is being written. It has its name only after ``close``."""

    def write(self, row: Sequence[Any]) -> None:
        """Add a row. Raises WorkFailed, OSError."""
        ...

    def close(self) -> None:
        """Write the rest. Raises WorkFailed, OSError."""
        ...

    def discard(self) -> None:
        """Leave no file."""
        ...


def library(name: str) -> Any:
    """Import what a format needs. Raises WorkFailed if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        text = f"this worker has no {name}; install it there: pip install 'shoal[files]'"
        raise WorkFailed(text) from None


def distinct_names(columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns. Raises WorkFailed if two are the same."""
    names = [column.name for column in columns]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        text = f"two columns are called {double[:100]!r}; name one of them with AS"
        raise WorkFailed(text, permanent=True)
    return names


def part(path: Path) -> Path:
    """Return the name of a file while it is written."""
    return path.with_name(path.name + ".part")


def neutral(value: Any) -> str:
    """Return a value as a cell of CSV that is not a formula."""
    text = as_text(value)
    if isinstance(value, int | float | Decimal) or not text.startswith(_FORMULA):
        return text
    return text if _NUMBER.fullmatch(text) else "'" + text


class CsvWriter:
    """UTF-8, comma, quotes where needed, a line feed behind each row; NULL is an empty cell."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self._path = path
        self._file = part(path).open("w", encoding="utf-8", newline="", buffering=1 << 16)
        self._writer = csv.writer(self._file, lineterminator="\n")
        self.write([column.name for column in columns])

    def write(self, row: Sequence[Any]) -> None:
        self._writer.writerow([_csv_cell(value) for value in row])

    def close(self) -> None:
        self._file.close()
        part(self._path).rename(self._path)

    def discard(self) -> None:
        self._file.close()
        part(self._path).unlink(missing_ok=True)


def _csv_cell(value: Any) -> Any:
    # csv itself writes numbers and nothing; most cells are one of those or a harmless text.
    kind = type(value)
    if value is None or kind is int or (kind is str and not value.startswith(_FORMULA)):
        return value
    return neutral(value)


class XlsxWriter:
    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        if len(columns) > _MOST_COLUMNS:
            text = f"{len(columns):,} columns do not fit a worksheet ({_MOST_COLUMNS:,})"
            raise WorkFailed(text, permanent=True)
        self._path, self._columns = path, columns
        options = {"constant_memory": True, "tmpdir": str(path.parent)}
        self._book = library("xlsxwriter").Workbook(str(part(path)), options)
        self._book.use_zip64()
        self._sheet = self._book.add_worksheet("result")
        self._text = self._book.add_format({"quote_prefix": True})
        self._formats = {
            datetime: self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
            date: self._book.add_format({"num_format": "yyyy-mm-dd"}),
            time: self._book.add_format({"num_format": "hh:mm:ss"}),
        }
        self._count = 0
        self.write([column.name for column in columns])

    def write(self, row: Sequence[Any]) -> None:
        for column, value in enumerate(row):
            if value is not None:
                self._cell(column, value)
        self._count += 1

    def close(self) -> None:
        self._book.close()
        part(self._path).rename(self._path)

    def discard(self) -> None:
        self._book.close()  # it has files of its own, which only this removes
        part(self._path).unlink(missing_ok=True)

    def _cell(self, column: int, value: Any) -> None:
        sheet, row = self._sheet, self._count
        if isinstance(value, bool):
            sheet.write_boolean(row, column, value)
        elif _is_number(value):
            sheet.write_number(row, column, value)
        elif _is_day(value):
            sheet.write_datetime(row, column, value, self._formats[type(value)])
        else:
            self._write_text(column, as_text(value))

    def _write_text(self, column: int, text: str) -> None:
        if len(text) > _LONGEST_CELL:
            where = f"row {self._count:,}, column {self._columns[column].name[:100]!r}"
            reason = f"{where}: {len(text):,} characters, a cell of XLSX has {_LONGEST_CELL:,}"
            raise WorkFailed(f"{reason}; write CSV or Parquet", permanent=True)
        is_formula = text.startswith(_FORMULA)
        self._sheet.write_string(self._count, column, text, self._text if is_formula else None)


def _is_number(value: Any) -> bool:
    """Return whether Excel keeps the number as it is."""
    match value:
        case int():
            return bool(abs(value) < 10**_MOST_DIGITS)
        case float():
            return math.isfinite(value)
        case Decimal():
            return value.is_finite() and len(value.as_tuple().digits) <= _MOST_DIGITS
        case _:
            return False


def _is_day(value: Any) -> bool:
    match value:
        case datetime():
            return value.tzinfo is None and bool(value.date() >= _FIRST_DAY)
        case date():
            return bool(value >= _FIRST_DAY)
        case time():
            return value.tzinfo is None
        case _:
            return False
