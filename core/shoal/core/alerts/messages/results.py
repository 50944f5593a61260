"""What a task found, as a table: rows of SQL, figures, checks of data that did not hold. Pure."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from shoal.core.alerts.messages.message import Attachment
from shoal.core.untrusted import encodable, read_json

_SHOWN = 20  # rows of a message; an attachment has all
_MOST_COLUMNS = 50
_LONGEST_CELL = 100  # characters, of a message
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class ResultTable:
    """Rows of texts under the names of columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def table_of(outputs: Mapping[str, str]) -> ResultTable | None:
    """Return what a task's outputs show; None: it has none."""
    for name in ("checks", "rows"):
        found = _listed(outputs.get(name))
        if found is not None:
            return found
    if not outputs:
        return None
    columns = sorted(outputs)[:_MOST_COLUMNS]
    return ResultTable(columns, [[encodable(outputs[name]) for name in columns]])


def _listed(text: str | None) -> ResultTable | None:
    """Return the table that a JSON list of objects is; None: it is none."""
    try:
        items = read_json(text) if text else None
    except ValueError:
        return None
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        return None
    columns = list(dict.fromkeys(key for one in items for key in one))[:_MOST_COLUMNS]
    return ResultTable(
        [encodable(one) for one in columns],
        [[_cell(one.get(name)) for name in columns] for one in items],
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return encodable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def text_lines(table: ResultTable) -> Iterator[str]:
    """Yield the first rows in columns of one width."""
    shown = [[_short(cell) for cell in row] for row in (table.columns, *table.rows[:_SHOWN])]
    widths = [max(len(row[place]) for row in shown) for place in range(len(table.columns))]
    for row in shown:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
    if (more := len(table.rows) - _SHOWN) > 0:
        yield f"(+{more:,})"


def html_of(table: ResultTable) -> str:
    """Return the first rows as HTML."""
    cell_style = 'style="padding:2px 14px 2px 0;vertical-align:top"'
    heads = "".join(
        f'<th align="left" {cell_style}>{escape(_short(one))}</th>' for one in table.columns
    )
    rows = "".join(
        f"<tr>{''.join(f'<td {cell_style}>{escape(_short(cell))}</td>' for cell in row)}</tr>"
        for row in table.rows[:_SHOWN]
    )
    more = len(table.rows) - _SHOWN
    note = f"<p>(+{more:,})</p>" if more > 0 else ""
    style = 'style="border-collapse:collapse;font-size:13px"'
    return f"<table {style}><tr>{heads}</tr>{rows}</table>{note}"


def attachment(name: str, table: ResultTable) -> Attachment:
    """Return all rows as CSV. A text that a spreadsheet would run gets a ``'`` in front."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow([_harmless(one) for one in table.columns])
    writer.writerows([_harmless(cell) for cell in row] for row in table.rows)
    return Attachment(f"{name}.csv", "text/csv", written.getvalue().encode())


def _harmless(cell: str) -> str:
    if not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _short(cell: str) -> str:
    line = " ".join(cell.split())
    return line if len(line) <= _LONGEST_CELL else f"{line[: _LONGEST_CELL - 1]}…"
