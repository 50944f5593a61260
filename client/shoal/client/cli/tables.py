"""Tables without lines: a quiet head, columns that are as wide as needed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def table(*columns: str) -> "Table":
    """Return an empty table.

    A name that ends in ``>`` is a column of numbers. One that ends in ``~`` is wrapped on narrow
    terminals; all others keep their lines whole as long as there is room.
    """
    from rich.table import Table

    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in columns:
        wraps = name.endswith("~")
        shown.add_column(
            name.rstrip(">~"),
            justify="right" if name.endswith(">") else "left",
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
        )
    return shown
