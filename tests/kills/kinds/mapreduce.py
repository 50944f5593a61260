"""MR tasks whose jobs run in the attempt's own process."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.kills.kinds.kind import Kind
from tests.kills.plan import Case
from tests.support.spark.word_count import compiled


class MapReduce(Kind):
    """An MR task: a word takes a second. A retry replaces what an attempt before has written."""

    name, label = "MR", "MR, local"
    launch_s, patience_s = 4.0, 600.0

    async def serve(self, stack: AsyncExitStack) -> None:
        """See Kind."""
        self._jar = compiled(self.folder)

    def prepare(self, case: Case) -> None:
        """See Kind."""
        given = self.folder / case.marker
        given.mkdir()
        slow = " slow" * max(1, round(case.seconds))
        (given / "words.txt").write_text(f"{case.marker}{slow}")

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        counts = str(self._counts(case))
        arguments = [str(self.folder / case.marker), counts]
        params = {"jar": str(self._jar), "arguments": arguments, "overwrite": counts}
        return {"type": "MR", "params": params}

    def is_submitted(self, case: Case, attempt: str) -> bool:
        """See Kind."""
        return (self._counts(case) / "_temporary").exists()

    def effects(self, case: Case) -> int:
        """See Kind."""
        return int((self._counts(case) / "_SUCCESS").exists())

    def _counts(self, case: Case) -> Path:
        return self.folder / f"{case.marker}-counts"
