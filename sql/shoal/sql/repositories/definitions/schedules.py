"""Schedules: the timetables of published workflows and when each fires next."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import Row, Select, bindparam, delete, insert, select, update

from shoal.core.access.authorization import Visible
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.definition.model import Missed, ScheduleSpec, WorkflowSpec
from shoal.core.runs.records import EventKind, StoredSchedule
from shoal.core.schedule.fire_times import GRACE, Timetable
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound, PartitionsMissing, StaleRow
from shoal.sql.repositories.definitions.calendars import Calendars
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.repositories.upkeep.partitions import Partitions
from shoal.sql.schema import tables
from shoal.sql.schema.tables import schedule, workflow
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.json_columns import check_texts
from shoal.sql.statements.rows import OnUnreadable, enough, leave_out, readable, record_of, refuse

_ScheduleList = list[StoredSchedule]

# What says when a schedule fires: a change of one of these changes the fire times.
_TIMES = (
    "cron",
    "timezone",
    "on_gap",
    "on_overlap",
    "starts_at",
    "ends_at",
    "exclude",
    "calendar",
)
_COLUMNS = (*_TIMES, "parameters", "enabled", "priority", "missed", "missed_window")
_ADVANCE = (
    update(schedule)
    .where(schedule.c.id == bindparam("row_id"), schedule.c.next_fire_at == bindparam("planned"))
    .values(next_fire_at=bindparam("following"))
)


class Schedules:
    """The ``schedule`` table.

    All schedules of a workflow belong to one partition. ``next_fire_at`` is written by that
    partition's owner and by ``Workflows.publish``, one after the other: the publisher has locked
    the workflow, the owner holds it with ``hold``.
    """

    def __init__(
        self,
        connection: Connection,
        partitions: Partitions,
        calendars: Calendars,
        events: Events,
    ) -> None:
        self._connection, self._events = connection, events
        self._partitions = partitions
        self._calendars = calendars

    async def replace(self, workflow_id: int, spec: WorkflowSpec, at: datetime) -> None:
        """Make the workflow's schedules those of ``spec``.

        One whose times stay the same keeps its row and its next fire time, so that publishing
        neither repeats nor loses a fire, whatever else changes. One whose times change keeps the
        row too and counts anew from ``at``, after a fire that was due already and is not missed
        yet. Raises InvalidDefinition for a calendar that the project does not have.
        """
        days = await self._calendar_days(spec)
        new = [
            _New(one, spec.timezone, days.get(one.calendar or "", frozenset()))
            for one in spec.schedules
        ]
        stored = await self._of(schedule.c.workflow_id == workflow_id, lock=True)
        pairs, added, removed = _paired(new, stored)
        for wanted, present in pairs:
            if changes := wanted.changes(present, at):
                await self._connection.execute(
                    update(schedule).where(schedule.c.id == present.id).values(changes)
                )
        if removed:
            ids = [one.id for one in removed]
            await self._connection.execute(delete(schedule).where(schedule.c.id.in_(ids)))
        if added:
            where = {"workflow_id": workflow_id, "partition": await self._partition_of(workflow_id)}
            await self._connection.execute(
                insert(schedule),
                [
                    {
                        **one.values,
                        **where,
                        "next_fire_at": one.first_fire(at),
                        "expected_since": at,
                    }
                    for one in added
                ],
            )

    async def require(self, spec: WorkflowSpec) -> None:
        """Raise InvalidDefinition for a calendar that the project does not have."""
        await self._calendar_days(spec)

    async def _calendar_days(self, spec: WorkflowSpec) -> Mapping[str, frozenset[date]]:
        names = {one.calendar for one in spec.schedules if one.calendar is not None}
        found = await self._calendars.held(spec.project, names)
        problems = [
            DefinitionProblem(
                ("schedules", index, "calendar"),
                f"project {spec.project} has no calendar {one.calendar!r}; make it with "
                f"`shoal calendar set {spec.project}/{one.calendar} DATE...`",
            )
            for index, one in enumerate(spec.schedules)
            if one.calendar is not None and one.calendar not in found
        ]
        if problems:
            raise InvalidDefinition(problems)
        return found

    async def _partition_of(self, workflow_id: int) -> int:
        count = await self._partitions.count()
        if count == 0:
            raise PartitionsMissing
        digest = hashlib.sha256(f"schedules of workflow {workflow_id}".encode()).digest()
        return int.from_bytes(digest[:8]) % count

    async def suspend(self, workflow_id: int) -> None:
        """Have the schedules of a workflow not fire."""
        query = update(schedule).where(schedule.c.workflow_id == workflow_id)
        await self._connection.execute(query.values(next_fire_at=None))

    async def resume(self, workflow_id: int, at: datetime) -> None:
        """Have the schedules of a workflow fire again, from ``at`` on; nothing is made up for."""
        await self._plan(await self._of(schedule.c.workflow_id == workflow_id, lock=True), at)

    async def pause(self, schedule_id: int, at: datetime) -> StoredSchedule:
        """Have a schedule not fire, whatever its definition says. Raises NotFound."""
        found = await self._locked(schedule_id)
        if found.paused_at is None:
            query = update(schedule).where(schedule.c.id == schedule_id)
            await self._connection.execute(query.values(paused_at=at, next_fire_at=None))
            await self._events.add([_changed(found, "PAUSED", at)])
        return await self.get(schedule_id)

    async def unpause(self, schedule_id: int, at: datetime) -> StoredSchedule:
        """Undo that, from ``at`` on; nothing is made up for. Raises NotFound."""
        found = await self._locked(schedule_id)
        if found.paused_at is not None:
            query = update(schedule).where(schedule.c.id == schedule_id)
            await self._connection.execute(query.values(paused_at=None))
            await self._events.add([_changed(found, "RESUMED", at)])
            is_archived = select(workflow.c.archived_at).where(workflow.c.id == found.workflow_id)
            if await self._connection.scalar(is_archived) is None:
                await self._plan([replace(found, paused_at=None)], at)
        return await self.get(schedule_id)

    async def _locked(self, schedule_id: int) -> StoredSchedule:
        """Return a schedule, locked until the end. Workflows are locked first."""
        found = await self.get(schedule_id)
        await self._connection.execute(
            select(workflow.c.id).where(workflow.c.id == found.workflow_id).with_for_update()
        )
        held = await self._of(schedule.c.id == schedule_id, lock=True)
        if not held:
            raise NotFound("schedule", schedule_id)
        return held[0]

    async def _plan(self, found: Sequence[StoredSchedule], at: datetime) -> None:
        """Set when schedules fire next, after ``at``."""
        days = await self._calendars.days(
            {(one.project, one.calendar) for one in found if one.calendar is not None}
        )
        for one in found:
            timetable = Timetable.of(one, days.get((one.project, one.calendar or ""), ()))
            await self._connection.execute(
                update(schedule)
                .where(schedule.c.id == one.id)
                .values(
                    next_fire_at=timetable.next(at) if one.enabled and not one.paused_at else None,
                    expected_since=at,
                )
            )

    async def delete_of(self, workflow_id: int) -> None:
        """Delete the schedules of a workflow."""
        await self._connection.execute(
            delete(schedule).where(schedule.c.workflow_id == workflow_id)
        )

    async def due(
        self,
        partitions: Collection[int],
        now: datetime,
        limit: int,
        on_unreadable: OnUnreadable = refuse,
    ) -> _ScheduleList:
        """Return what should have fired by ``now``, the longest overdue first."""
        query = (
            _schedules()
            .where(schedule.c.next_fire_at <= now, schedule.c.partition.in_(sorted(partitions)))
            .order_by(schedule.c.next_fire_at, schedule.c.partition)
            .limit(limit)
        )
        rows = await self._connection.rows(query)
        return readable(rows, _schedule, "schedule", on_unreadable)

    async def next_due(
        self, partitions: Collection[int], after: datetime | None = None
    ) -> datetime | None:
        """Return when the next schedule of these partitions fires; None if none ever does.

        ``after``: only what fires later than that. Without it a time that cannot be read counts as
        past, so that ``due`` is asked and reports its row.
        """
        c = schedule.c
        is_later = c.next_fire_at.is_not(None) if after is None else c.next_fire_at > after
        query = (
            select(c.next_fire_at)
            .where(is_later, c.partition.in_(sorted(partitions)))
            .order_by(c.next_fire_at)
            .limit(1)
        )
        found: datetime | UnreadableValue | None = await self._connection.scalar(query)
        if isinstance(found, UnreadableValue):
            return None if after is not None else datetime.min.replace(tzinfo=UTC)
        return found

    async def hold(
        self, ids: Collection[int], on_unreadable: OnUnreadable = refuse
    ) -> dict[int, StoredSchedule]:
        """Return schedules as they are now, by id; no others are published until the commit.

        One that is gone is missing. Workflows are locked before schedules, and in one order, as
        publishers do it, so there are no deadlocks.
        """
        homes = select(schedule.c.workflow_id).where(schedule.c.id.in_(ids))
        await self._connection.execute(
            select(workflow.c.id)
            .where(workflow.c.id.in_(homes))
            .order_by(workflow.c.id)
            .with_for_update(read=True, key_share=True)
        )
        rows = await self._connection.rows(_schedules().where(schedule.c.id.in_(ids)))
        return {one.id: one for one in readable(rows, _schedule, "schedule", on_unreadable)}

    async def note_skipped(
        self, skipped: Sequence[tuple[StoredSchedule, datetime]], at: datetime
    ) -> None:
        """Tell that fire times from the planned ones on were left out. Never written first."""
        await self._events.add(
            [
                _changed(one, "SKIPPED", at, f"nothing fired from {planned.isoformat()} on")
                for one, planned in skipped
            ]
        )

    async def advance_many(self, moves: Sequence[tuple[int, datetime, datetime | None]]) -> None:
        """Move schedules on: (id, planned fire time, next fire time) each.

        Raises StaleRow unless all of them were still planned for that time.
        """
        if not moves:
            return
        rows = [
            {"row_id": row_id, "planned": planned, "following": following}
            for row_id, planned, following in sorted(moves, key=itemgetter(0))
        ]
        result = await self._connection.execute(_ADVANCE, rows)
        if result.rowcount != len(rows):
            raise StaleRow("schedule", {row_id for row_id, _, _ in moves})

    async def of_workflow(self, project: str, name: str) -> _ScheduleList:
        """Return the schedules of a workflow, oldest first."""
        return await self._of(tables.project.c.name == project, workflow.c.name == name)

    async def of_id(self, workflow_id: int) -> _ScheduleList:
        """Return the schedules of a workflow, oldest first; unreadable ones are left out."""
        query = _schedules().where(schedule.c.workflow_id == workflow_id).order_by(schedule.c.id)
        return readable(await self._connection.rows(query), _schedule, "schedule", leave_out)

    async def list(
        self,
        project: str | None = None,
        after_id: int = 0,
        limit: int = 50,
        visible: Visible = None,
        workflow: str | None = None,
    ) -> _ScheduleList:
        """Return schedules by id, starting behind ``after_id``."""
        query = _schedules().where(schedule.c.id > after_id).order_by(schedule.c.id)
        if project is not None:
            query = query.where(tables.project.c.name == project)
        if workflow is not None:
            query = query.where(tables.workflow.c.name == workflow)
        if visible is not None:
            query = query.where(tables.workflow.c.project_id.in_(sorted(visible)))
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _schedule, "schedule", limit
        )

    async def firing(
        self,
        until: datetime,
        limit: int,
        project: str | None = None,
        visible: Visible = None,
    ) -> _ScheduleList:
        """Return what fires before ``until`` or should have by now, the next one first."""
        c = schedule.c
        query = _schedules().where(c.next_fire_at < until).order_by(c.next_fire_at, c.partition)
        if project is not None:
            query = query.where(tables.project.c.name == project)
        if visible is not None:
            query = query.where(workflow.c.project_id.in_(sorted(visible)))
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _schedule, "schedule", limit
        )

    async def get(self, schedule_id: int) -> StoredSchedule:
        """Return one schedule. Raises NotFound."""
        found = await self._of(schedule.c.id == schedule_id)
        if not found:
            raise NotFound("schedule", schedule_id)
        return found[0]

    async def _of(self, *conditions: Any, lock: bool = False) -> _ScheduleList:
        query = _schedules().where(*conditions).order_by(schedule.c.id)
        if lock:
            query = query.with_for_update(of=schedule)
        return readable(await self._connection.rows(query), _schedule, "schedule")


def _schedules() -> Select[Any]:
    return (
        select(schedule, workflow.c.name.label("workflow"), tables.project.c.name.label("project"))
        .join_from(schedule, workflow)
        .join(tables.project)
    )


class _New:
    """A schedule as a definition wants it: ``values`` are columns of the table."""

    def __init__(self, spec: ScheduleSpec, timezone: str, days: frozenset[date]) -> None:
        self._timetable = Timetable.defined(spec, timezone, days)
        self.values: dict[str, Any] = {
            "cron": spec.cron,
            "timezone": spec.timezone or timezone,
            "parameters": spec.parameters,
            "enabled": spec.enabled,
            "priority": None if spec.priority is None else int(spec.priority),
            "on_gap": spec.on_gap,
            "on_overlap": spec.on_overlap,
            "starts_at": self._timetable.start,
            "ends_at": self._timetable.end,
            "exclude": [day.isoformat() for day in sorted(set(spec.exclude))],
            "calendar": spec.calendar,
            "missed": spec.missed,
            "missed_window": spec.missed_window,
        }

    def first_fire(self, at: datetime) -> datetime | None:
        """Return the first fire time after ``at``; None while disabled."""
        return self._timetable.next(at) if self.values["enabled"] else None

    def changes(self, stored: StoredSchedule, at: datetime) -> dict[str, Any]:
        """Return the columns in which it differs from ``stored``, to be written at ``at``.

        What would have fired while it was off is not made up for.
        """
        before = _stored_values(stored)
        changed = {key: value for key, value in self.values.items() if value != before[key]}
        if stored.paused_at is None and changed.keys() & {*_TIMES, "enabled"}:
            planned = stored.next_fire_at
            is_due = planned is not None and at - GRACE <= planned <= at
            changed["next_fire_at"] = self.first_fire(at)
            changed["expected_since"] = at
            if is_due and self.values["enabled"]:
                changed["next_fire_at"] = planned
        return changed


def _stored_values(stored: StoredSchedule) -> dict[str, Any]:
    values = {key: getattr(stored, key) for key in _COLUMNS}
    return {**values, "exclude": [day.isoformat() for day in stored.exclude]}


def _paired(
    new: Sequence[_New], stored: Sequence[StoredSchedule]
) -> tuple[list[tuple[_New, StoredSchedule]], list[_New], _ScheduleList]:
    """Say which schedule becomes which; what is left of both is added and removed.

    First those that stay as they are, then those whose times stay, then what is left, in order.
    """
    pairs: list[tuple[_New, StoredSchedule]] = []
    wanted, present = list(new), list(stored)
    for columns in (_COLUMNS, (*_TIMES, "parameters"), _TIMES, ()):
        waiting: defaultdict[str, _ScheduleList] = defaultdict(list)
        for one in present:
            waiting[_key(_stored_values(one), columns)].append(one)
        left = []
        for candidate in wanted:
            same = waiting[_key(candidate.values, columns)]
            if same:
                pairs.append((candidate, same.pop(0)))
            else:
                left.append(candidate)
        wanted, present = left, [one for rest in waiting.values() for one in rest]
    return pairs, wanted, present


def _key(values: Mapping[str, Any], columns: Iterable[str]) -> str:
    return json.dumps([values[column] for column in columns], default=str, sort_keys=True)


def _schedule(row: Row[Any]) -> StoredSchedule:
    check_texts(row.parameters)
    return record_of(
        StoredSchedule,
        row,
        exclude=tuple(date.fromisoformat(day) for day in row.exclude or ()),
        missed=Missed(row.missed),
    )


def _changed(
    found: StoredSchedule, state: str, at: datetime, reason: str | None = None
) -> NewEvent:
    data = {"schedule_id": found.id, "workflow": found.workflow, "state": state, "reason": reason}
    return NewEvent(at, EventKind.SCHEDULE_STATE, found.project, data)
