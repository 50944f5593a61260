"""The figures of growth as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One figure with so much of something."""

    what: str  # what there is more and more of
    where: str  # the database, or the shape of the DAG
    size: int
    figure: str  # what is measured, with its unit
    value: float


def markdown(rows: Sequence[Row]) -> str:
    """Return a table: a line for each figure, the sizes beside each other."""
    text = "| what there is | | figure | with | | most by least |\n"
    text += "| --- | --- | --- | ---: | ---: | ---: |\n"
    for row in rows:
        first = next(o for o in rows if _line(o) == _line(row))
        ratio = f"{row.value / first.value:.2f}" if first.value else ""
        text += f"| {row.what} | {row.where} | {row.figure} | {row.size:,} | "
        text += f"{row.value:,.3g} | {ratio} |\n"
    return text


def _line(row: Row) -> tuple[str, str, str]:
    return row.what, row.where, row.figure
