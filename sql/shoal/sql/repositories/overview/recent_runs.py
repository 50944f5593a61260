"""The last runs of many workflows, and when each fires next: no query for each of them.

The last run is that for the latest logical time, which an index finds at once.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, func, select, union_all

from shoal.core.runs.records import Instance
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.repositories.runs.instances import Instances
from shoal.sql.schema.tables import schedule, workflow_instance
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.value_sets import Among, numbers

# A workflow, and the first instant of a window and the first behind it.
Windowed = tuple[int, tuple[datetime, datetime]]

_TOGETHER = 50  # workflows in one statement
_I = workflow_instance.c


class Recent:
    """Reads ``workflow_instance`` and ``schedule`` for lists of workflows."""

    def __init__(self, connection: Connection, instances: Instances) -> None:
        self._connection = connection
        self._instances = instances

    async def runs(self, workflow_ids: Collection[int], each: int) -> dict[int, list[Instance]]:
        """Return the last runs of workflows, ``each`` at most, the latest logical time first."""
        return await self._last([(_I.workflow_id == one,) for one in sorted(workflow_ids)], each)

    async def runs_within(
        self, windows: Collection[Windowed], each: int
    ) -> dict[Windowed, list[Instance]]:
        """Return the same of runs whose logical times are in a window of a workflow."""
        wanted = [
            (_I.workflow_id == one, _I.logical_time >= start, _I.logical_time < end)
            for one, (start, end) in sorted(set(windows))
        ]
        found = await self._last(wanted, each)
        return {
            (one, window): _within(found.get(one, ()), window)[:each] for one, window in windows
        }

    async def _last(
        self, wanted: Sequence[tuple[ColumnElement[bool], ...]], each: int
    ) -> dict[int, list[Instance]]:
        """``wanted``: conditions that hold for the runs of one workflow."""
        ids: list[int] = []
        for some in batched(wanted if each else (), _TOGETHER):
            walks = [
                select(_I.id)
                .where(*conditions)
                .order_by(_I.logical_time.desc(), _I.id.desc())
                .limit(each)
                .subquery()
                for conditions in some
            ]
            rows = await self._connection.rows(union_all(*(select(walk) for walk in walks)))
            ids += [row.id for row in rows]
        found: defaultdict[int, list[Instance]] = defaultdict(list)
        for known in batched(list(dict.fromkeys(ids)), _TOGETHER * 10):
            for run in await self._instances.known(known):
                found[run.workflow_id].append(run)
        for runs in found.values():
            runs.sort(key=lambda run: (run.logical_time, run.id), reverse=True)
        return dict(found)

    async def next_fires(self, workflow_ids: Collection[int]) -> Mapping[int, datetime]:
        """Return when workflows fire next; those that do not are missing."""
        rows = await self._connection.fetch(_NEXT_FIRES, {"ids": sorted(workflow_ids)})
        return {
            row.workflow_id: row.at
            for row in rows
            if row.at is not None and not isinstance(row.at, UnreadableValue)
        }


_NEXT_FIRES = (
    select(schedule.c.workflow_id, func.min(schedule.c.next_fire_at).label("at"))
    .where(Among(schedule.c.workflow_id, numbers("ids")), schedule.c.next_fire_at.is_not(None))
    .group_by(schedule.c.workflow_id)
)


def _within(runs: Sequence[Instance], window: tuple[datetime, datetime]) -> list[Instance]:
    return [one for one in runs if window[0] <= one.logical_time < window[1]]
