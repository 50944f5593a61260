"""What is known of one kind of task."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from shoal.core.data_sources import DataSource
from tests.chaos.workload.rest import Api
from tests.kills.plan import Case
from tests.kills.sides.side import Side, Watch


class Kind(ABC):
    """One kind. Its servers live as long as the stack that ``open`` gets."""

    name: str  # letters alone
    label: str
    launch_s = 0.6  # about how long it takes from the process to the job
    patience_s = 180.0  # for a run to end, however often it is hurt
    declares = False  # whether a task of the type says if it is idempotent
    may_stay_lost = False  # whether one that is not stays undone when its worker is lost
    counts = True  # whether a job has an effect that can be counted
    swallows = False  # whether a stubborn job catches its cancellation
    bounds_cancel = False  # whether the time until a cancelled job has gone is promised

    def __init__(self) -> None:
        self.watches: list[Watch] = []  # the one that shows jobs is the last

    async def open(self, stack: AsyncExitStack, folder: Path, local: Watch) -> None:
        """Start the servers and begin to look. Keeps the event loop waiting meanwhile."""
        self.folder = folder
        await asyncio.to_thread(folder.mkdir)
        self.watches = [local]
        side = await self.serve(stack)
        if side is not None:
            self.watches.append(stack.enter_context(Watch(side)))

    async def serve(self, stack: AsyncExitStack) -> Side | None:
        """Start the servers; return where the jobs are, None: on the workers."""
        return None

    def sources(self) -> Sequence[DataSource]:
        """Return the data sources that all cases share."""
        return ()

    async def prepare_all(self, api: Api, case: Case) -> None:
        """Make what the case needs, at the other side and in Shoal."""
        await asyncio.to_thread(self.prepare, case)

    def prepare(self, case: Case) -> None:  # noqa: B027 - most need nothing
        """Make what the case needs at the other side. Blocks."""

    @abstractmethod
    def task(self, case: Case) -> Mapping[str, Any]:
        """Return ``type`` and ``params`` of the task."""

    def is_submitted(self, case: Case, attempt: str) -> bool:
        """Return whether the job of an attempt, the newest one, is there."""
        return bool(self.watches[-1].seen(case.marker).live)

    @abstractmethod
    def effects(self, case: Case) -> int:
        """Return how often the work was done. Blocks."""

    def received(self, case: Case) -> int | None:
        """Return how often the work was begun, if the other side knows; else None."""
        return None


class Ledgered(Kind):
    """A kind whose jobs are programs of this machine: they write down their beginning and end."""

    def ledger(self, case: Case) -> Path:
        return self.folder / case.marker

    def is_submitted(self, case: Case, attempt: str) -> bool:
        """See Kind."""
        return f"begin {attempt}" in self._lines(case, "begin")

    def effects(self, case: Case) -> int:
        """See Kind."""
        return len(self._lines(case, "end"))

    def _lines(self, case: Case, word: str) -> Sequence[str]:
        try:
            lines = self.ledger(case).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if line.startswith(word)]
