"""The SQLite file of a cluster whose processes share one machine."""

from pathlib import Path
from types import TracebackType
from typing import Self


class SqliteFile:
    """A file in ``folder``. It has no server that could crash: it is hurt with its processes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "shoal.db"

    @property
    def url(self) -> str:
        """Shoal's database."""
        return f"sqlite:///{self.path}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Keep the file: it belongs to the evidence."""

    async def start(self) -> None:
        """Return at once."""

    def crash(self) -> None:
        """Return at once: the processes that use the file are killed by the caller."""
