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
class Grid:
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
        from rich.table import Table

        indexes = [i for i in range(len(self.columns)) if any(row[i].plain for row in self.rows)]
        for name in spare:
            if sum(self._width(i) + _GAP for i in indexes) - _GAP <= width:
                break
            indexes = [i for i in indexes if self.columns[i].rstrip(">~") != name]
        shown = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
        for index in indexes:
            name = self.columns[index]
            wraps = name.endswith("~")
            shown.add_column(
                name.rstrip(">~"),
                justify="right" if name.endswith(">") else "left",
                no_wrap=not wraps,
                overflow="fold" if wraps else "ellipsis",
            )
        for row in self.rows:
            shown.add_row(*(row[index] for index in indexes))
        return shown

    def _width(self, index: int) -> int:
        name = self.columns[index]
        widest = max(len(name.rstrip(">~")), *(row[index].cell_len for row in self.rows))
        return min(widest, _WRAPPED_WIDTH) if name.endswith("~") else widest
