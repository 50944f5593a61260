"""Results that are read from the driver a block at a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shoal.worker.types.sql.session import Column

BLOCK = 200  # rows: enough to make reading cheap, few enough for rows of a megabyte

Row = tuple[Any, ...]


class NoRows:
    """The result of a statement that returns none."""

    columns: Sequence[Column] = ()

    def __init__(self, row_count: int | None) -> None:
        self.row_count = row_count

    def __iter__(self) -> Iterator[Row]:
        """See Result."""
        return iter(())

    def next_set(self) -> bool:
        """See Result."""
        return False

    def close(self) -> None:
        """See Result."""


class RowStream:
    """One result set. ``fetch`` returns the next rows, at most so many, and none at the end;
    it translates the errors of the driver.

    ``finish`` is called once, after the last row or when the reader gives up: it reads or drops
    what is left and returns the number of changed rows, if the database says one.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        fetch: Callable[[int], Sequence[Sequence[Any]]],
        finish: Callable[[], int | None],
    ) -> None:
        self.columns = columns
        self.row_count: int | None = None
        self._fetch, self._finish = fetch, finish
        self._is_over = False

    def __iter__(self) -> Iterator[Row]:
        """See Result."""
        while not self._is_over:
            try:
                block = self._fetch(BLOCK)
            except BaseException:
                self._is_over = True
                raise
            if not block:
                self.close()
                return
            yield from map(tuple, block)

    def next_set(self) -> bool:
        """See Result."""
        self.close()
        return False

    def close(self) -> None:
        """See Result."""
        if not self._is_over:
            self._is_over = True
            self.row_count = self._finish()
