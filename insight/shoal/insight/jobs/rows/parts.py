"""Parts: all current rows of some workflows each, in the order of plans and runs, in files.

A part is what one process works on at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS
from shoal.insight.jobs.rows.chunks import schema
from shoal.insight.jobs.rows.transfer import read, written

PLAN = ("project", "workflow", "version")


@dataclass(frozen=True)
class RowsPart:
    """All current rows of some workflows."""

    folder: Path
    number: int

    def attempts(self, *columns: str) -> pa.Table:
        """Return columns of the attempts, in the order of plans and runs."""
        return read(self.file(ATTEMPTS.name), schema(ATTEMPTS), columns)

    def instances(self, *columns: str) -> pa.Table:
        """Return columns of the instances, in the order of plans and runs."""
        return read(self.file(INSTANCES.name), schema(INSTANCES), columns)

    def plans(self) -> pa.Table:
        """Return the plans."""
        return read(self.file(PLANS.name), schema(PLANS), [*PLAN, "tasks"])

    def kept(self, name: str, result: pa.Schema, compute: Callable[[], pa.Table]) -> pa.Table:
        """Return what ``compute`` makes of this part, which is done once for several jobs."""
        path = self.file(name)
        if not path.exists():
            written(compute(), path)
        return read(path, result, result.names)

    def file(self, name: str) -> Path:
        """Return where the rows of a table are."""
        return self.folder / "parts" / name / f"{self.number}.arrow"
