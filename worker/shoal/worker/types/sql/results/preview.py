"""A table in the log: the first rows of a result, for people.

Widths are bounded, wide characters count as two cells, and what could steer a terminal or hide in
the text (control characters, marks of direction) is shown by its number.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from shoal.worker.types.sql.results.values import as_text

WIDEST = 40  # cells of a column
WIDEST_TABLE = 160
_MOST_COLUMNS = 60
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def preview(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return lines with the names and the rows. NULL is written so, numbers stand to the right."""
    shown = [cell(name) for name in names[:_MOST_COLUMNS]]
    cells = [[_of_value(value) for value in row[: len(shown)]] for row in rows]
    widths = [
        min(WIDEST, max(cell_len(line[column]) for line in [shown, *cells]))
        for column in range(len(shown))
    ]
    count = _fitting(widths)
    right = [_is_number_column(rows, column) for column in range(count)]
    lines = [_line(shown, widths[:count], [False] * count)]
    lines.append("-+-".join("-" * width for width in widths[:count]))
    lines += [_line(line, widths[:count], right) for line in cells]
    if count < len(names):
        left = ", ".join(cell(name) for name in names[count : count + 10])
        more = ", …" if len(names) > count + 10 else ""
        lines.append(f"({len(names) - count} more columns: {left}{more})")
    return "\n".join(line.rstrip() for line in lines)


def one_line(text: str, width: int) -> str:
    """Return the beginning of a text as one line, white space made single spaces."""
    short = " ".join(text[: 4 * width].split())
    shown = "".join(_visible(character) for character in short[: width + 1])
    is_whole = len(text) <= 4 * width and cell_len(shown) <= width
    return shown if is_whole else set_cell_size(shown, min(width, cell_len(shown)) - 1) + "…"


def cell(text: str) -> str:
    """Return the beginning of a text as it can be shown in one line."""
    beginning = text[: WIDEST + 1]
    visible = "".join(_visible(character) for character in beginning)
    return _cut(visible if len(text) == len(beginning) else visible + "…")


def _of_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes | bytearray | memoryview):
        beginning = bytes(value[: WIDEST // 2 + 1]).hex()
        return _cut(beginning + "…") if len(value) > WIDEST // 2 + 1 else _cut(beginning)
    return cell(as_text(value))


def _visible(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    if unicodedata.category(character) not in _HIDDEN:
        return character
    number = ord(character)
    return _ESCAPES.get(character) or (
        f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
    )


def _cut(text: str) -> str:
    return text if cell_len(text) <= WIDEST else set_cell_size(text, WIDEST - 1).rstrip() + "…"


def _fitting(widths: Sequence[int]) -> int:
    """Return how many columns fit into a line; at least one."""
    room = WIDEST_TABLE
    for count, width in enumerate(widths):
        room -= width + (3 if count else 0)
        if room < 0 and count:
            return count
    return len(widths)


def _is_number_column(rows: Sequence[Sequence[Any]], column: int) -> bool:
    values = [row[column] for row in rows if row[column] is not None]
    return bool(values) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for text, width, is_right in zip(cells, widths, right, strict=False):
        space = " " * max(0, width - cell_len(text))
        padded.append(space + text if is_right else text + space)
    return " | ".join(padded)
