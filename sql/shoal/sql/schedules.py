"""Schedules: the timetables of published workflows and when each fires next."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, update

from shoal.core import cron
from shoal.core.model import Missed, ScheduleSpec, WorkflowSpec
from shoal.core.records import Schedule
from shoal.sql import tables
from shoal.sql.connection import Connection
from shoal.sql.errors import PartitionsMissing
from shoal.sql.partitions import Partitions
from shoal.sql.tables import schedule, workflow

_ScheduleList = list[Schedule]
_Key = tuple[str, str, str]  # cron, time zone, parameters as JSON


class Schedules:
    """The ``schedule`` table.

    All schedules of a workflow belong to one partition. ``next_fire_at`` is written by that
    partition's owner and by ``Workflows.publish``.
    """

    def __init__(self, connection: Connection, partitions: Partitions) -> None:
        self._connection = connection
        self._partitions = partitions

    async def replace(self, workflow_id: int, spec: WorkflowSpec, at: datetime) -> None:
        """Make the workflow's schedules those of ``spec``.

        One whose cron, time zone and parameters stay keeps its row and its next fire time, so
        that publishing neither repeats nor loses a fire; a new one starts to count at ``at``.
        """
        stored: defaultdict[_Key, list[Schedule]] = defaultdict(list)
        for one in await self._of(schedule.c.workflow_id == workflow_id):
            stored[one.cron, one.timezone, _json(one.parameters)].append(one)
        added: list[dict[str, Any]] = []
        for wanted in spec.schedules:
            zone = wanted.timezone or spec.timezone
            same = stored[wanted.cron, zone, _json(wanted.parameters)]
            if same:
                await self._switch(same.pop(0), wanted, at)
            else:
                added.append(_values(workflow_id, wanted, zone, at))
        await self._delete([one.id for left in stored.values() for one in left])
        if added:
            partition = await self._partition_of(workflow_id)
            await self._connection.execute(
                insert(schedule), [{**row, "partition": partition} for row in added]
            )

    async def _switch(self, stored: Schedule, wanted: ScheduleSpec, at: datetime) -> None:
        """Turn a schedule on or off. What would have fired while it was off is not made up for."""
        if stored.enabled == wanted.enabled:
            return
        await self._connection.execute(
            update(schedule)
            .where(schedule.c.id == stored.id)
            .values(enabled=wanted.enabled, next_fire_at=_first_fire(wanted, stored.timezone, at))
        )

    async def _partition_of(self, workflow_id: int) -> int:
        count = await self._partitions.count()
        if count == 0:
            raise PartitionsMissing
        digest = hashlib.sha256(f"schedules of workflow {workflow_id}".encode()).digest()
        return int.from_bytes(digest[:8]) % count

    async def delete_of(self, workflow_id: int) -> None:
        """Delete the schedules of a workflow."""
        await self._connection.execute(
            delete(schedule).where(schedule.c.workflow_id == workflow_id)
        )

    async def _delete(self, ids: Collection[int]) -> None:
        if ids:
            await self._connection.execute(delete(schedule).where(schedule.c.id.in_(ids)))

    async def due(self, partitions: Collection[int], now: datetime, limit: int) -> _ScheduleList:
        """Return what should have fired by ``now``, the longest overdue first."""
        query = (
            _schedules()
            .where(schedule.c.next_fire_at <= now, schedule.c.partition.in_(sorted(partitions)))
            .order_by(schedule.c.next_fire_at, schedule.c.partition)
            .limit(limit)
        )
        return [_schedule(row) for row in await self._connection.rows(query)]

    async def next_due(self, partitions: Collection[int]) -> datetime | None:
        """Return when the next schedule of these partitions fires; None if none ever does."""
        query = (
            select(schedule.c.next_fire_at)
            .where(
                schedule.c.next_fire_at.is_not(None),
                schedule.c.partition.in_(sorted(partitions)),
            )
            .order_by(schedule.c.next_fire_at)
            .limit(1)
        )
        found: datetime | None = await self._connection.scalar(query)
        return found

    async def advance(
        self, schedule_id: int, fired: datetime, next_fire_at: datetime | None
    ) -> bool:
        """Move a schedule on from ``fired``. False: it was not planned for that time any more."""
        result = await self._connection.execute(
            update(schedule)
            .where(schedule.c.id == schedule_id, schedule.c.next_fire_at == fired)
            .values(next_fire_at=next_fire_at)
        )
        return result.rowcount == 1

    async def of_workflow(self, project: str, name: str) -> _ScheduleList:
        """Return the schedules of a workflow, oldest first."""
        return await self._of(tables.project.c.name == project, workflow.c.name == name)

    async def list(
        self, project: str | None = None, after_id: int = 0, limit: int = 50
    ) -> _ScheduleList:
        """Return schedules by id, starting behind ``after_id``."""
        query = _schedules().where(schedule.c.id > after_id).order_by(schedule.c.id).limit(limit)
        if project is not None:
            query = query.where(tables.project.c.name == project)
        return [_schedule(row) for row in await self._connection.rows(query)]

    async def _of(self, *conditions: Any) -> _ScheduleList:
        query = _schedules().where(*conditions).order_by(schedule.c.id)
        return [_schedule(row) for row in await self._connection.rows(query)]


def _schedules() -> Select[Any]:
    return (
        select(schedule, workflow.c.name.label("workflow"), tables.project.c.name.label("project"))
        .join_from(schedule, workflow)
        .join(tables.project)
    )


def _values(workflow_id: int, spec: ScheduleSpec, zone: str, at: datetime) -> dict[str, Any]:
    return {
        "workflow_id": workflow_id,
        "cron": spec.cron,
        "timezone": zone,
        "parameters": spec.parameters,
        "enabled": spec.enabled,
        "missed": spec.missed,
        "next_fire_at": _first_fire(spec, zone, at),
    }


def _first_fire(spec: ScheduleSpec, zone: str, at: datetime) -> datetime | None:
    return cron.parse(spec.cron, zone).next(at) if spec.enabled else None


def _json(parameters: Mapping[str, str]) -> str:
    return json.dumps(parameters, sort_keys=True)


def _schedule(row: Row[Any]) -> Schedule:
    return Schedule(
        row.id,
        row.workflow_id,
        row.project,
        row.workflow,
        row.partition,
        row.cron,
        row.timezone,
        row.parameters,
        row.enabled,
        row.next_fire_at,
        priority=row.priority,
        on_gap=row.on_gap,
        on_overlap=row.on_overlap,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        exclude=tuple(date.fromisoformat(day) for day in row.exclude or ()),
        calendar=row.calendar,
        missed=Missed(row.missed),
        missed_window=row.missed_window,
    )
