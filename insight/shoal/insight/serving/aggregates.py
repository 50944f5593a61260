"""The aggregates of a result, which views over weeks read in place of its rows."""

from typing import Any

from shoal.core.insight.aggregates import Aggregation, Name, Rows, Values


class Aggregates:
    """Collects the aggregates of a result while its rows are written.

    ``rows`` are those of all its workflows, or None: readers take the rows of the result then.
    """

    def __init__(self, aggregation: Aggregation[Any]) -> None:
        self._aggregation = aggregation
        self.columns = aggregation.columns
        self.rows: list[Values] | None = []

    def add(self, name: Name, rows: Rows) -> None:
        """Add all rows of a workflow."""
        if self.rows is None:
            return
        try:
            one = self._aggregation.of(rows)
        except (TypeError, ValueError):  # a NULL for a count: readers leave that workflow out
            self.rows = None
            return
        self.rows += self._aggregation.written(name, one)
