"""Tables without lines: a quiet head, columns that are as wide as needed, none that is empty."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_GAP = 2  # characters between columns
_WRAPPED_WIDTH = 30  # a column that wraps is content with this


@dataclass
class TextTable:
    """Rows of cells under the names of columns.

    A name that ends in ``>`` is a column of numbers. One that ends in ``~`` wraps its cells;
    all others keep their lines whole as long as there is room.
    """

    columns: Sequence[str]
    rows: "list[list[Text]]" = field(default_factory=list)

    def add(self, *cells: "str | Text") -> None:
        """Add a row. Plain strings are taken as they are, without markup."""
        from rich.text import Text

        assert len(cells) == len(self.columns), "a cell for each column"
        self.rows.append([Text(cell) if isinstance(cell, str) else cell for cell in cells])

    def table(self, width: int, spare: Sequence[str] = ()) -> "Table":
        """Return it for ``width`` characters.

        Columns in which no row says anything are left out, and of ``spare``, first ones first,
        as many as it takes to fit.
        """
        indexes = [i for i in range(len(self.columns)) if any(row[i].plain for row in self.rows)]
        for name in spare:
            if sum(self._width(i) + _GAP for i in indexes) - _GAP <= width:
                break
            indexes = [i for i in indexes if self.columns[i].rstrip(">~") != name]
        widths = self._widths(indexes, width)
        return self._whole(indexes) if widths is None else self._lined(indexes, widths)

    def _whole(self, indexes: Sequence[int]) -> "Table":
        """Return a table in which rich finds out what gives way: a millisecond a row."""
        shown = _table()
        for index in indexes:
            _add_column(shown, self.columns[index])
        for row in self.rows:
            shown.add_row(*(row[index] for index in indexes))
        return shown

    def _lined(self, indexes: Sequence[int], widths: Sequence[int]) -> "Table":
        """Return a table of one column, whose cells are the lines: a quarter of that.

        A row with a cell that is wider than its column is a table of its own.
        """
        from rich.text import Text

        names = [Text(self.columns[index].rstrip(">~")) for index in indexes]
        right = [self.columns[index].endswith(">") for index in indexes]
        shown = _table()
        shown.add_column(_line(names, widths, right), no_wrap=True)
        for row in self.rows:
            cells = [row[index] for index in indexes]
            if all(cell.cell_len <= width for cell, width in zip(cells, widths, strict=True)):
                shown.add_row(_line(cells, widths, right))
                continue
            nested = _table(heads=False)
            for index, width in zip(indexes, widths, strict=True):
                _add_column(nested, self.columns[index], width)
            nested.add_row(*cells)
            shown.add_row(nested)
        return shown

    def _widths(self, indexes: Sequence[int], width: int) -> list[int] | None:
        """Return how wide the columns are; None: that is not so simple."""
        if not indexes or any(
            "\n" in row[i].plain or "\t" in row[i].plain for row in self.rows for i in indexes
        ):
            return None
        widths = [self._widest(index) for index in indexes]
        excess = sum(widths) + _GAP * (len(widths) - 1) - width
        if excess <= 0:
            return widths
        wrapping = [n for n, index in enumerate(indexes) if self.columns[index].endswith("~")]
        if len(wrapping) != 1 or widths[wrapping[0]] - excess < _WRAPPED_WIDTH:
            return None
        widths[wrapping[0]] -= excess
        return widths

    def _width(self, index: int) -> int:
        widest = self._widest(index)
        return min(widest, _WRAPPED_WIDTH) if self.columns[index].endswith("~") else widest

    def _widest(self, index: int) -> int:
        name = self.columns[index].rstrip(">~")
        return max(len(name), *(row[index].cell_len for row in self.rows))


def _table(*, heads: bool = True) -> "Table":
    from rich.table import Table

    return Table(
        box=None,
        padding=(0, _GAP, 0, 0),
        pad_edge=False,
        header_style="dim",
        show_header=heads,
    )


def _add_column(table: "Table", name: str, width: int | None = None) -> None:
    wraps = name.endswith("~")
    table.add_column(
        name.rstrip(">~"),
        justify="right" if name.endswith(">") else "left",
        no_wrap=not wraps,
        overflow="fold" if wraps else "ellipsis",
        width=width,
    )


def _line(cells: "Sequence[Text]", widths: Sequence[int], right: Sequence[bool]) -> "Text":
    """Return cells as one line; ``right``: whether each stands at the right of its column."""
    from rich.text import Text

    line = Text()
    for n, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        room = " " * (width - cell.cell_len)
        if n:
            line.append(" " * _GAP)
        if right[n]:
            line.append(room)
        line.append_text(cell)
        if not right[n]:
            line.append(room)
    return line
