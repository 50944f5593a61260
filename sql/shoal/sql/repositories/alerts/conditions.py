"""Conditions that hold, and the members of the cluster that were seen."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.records import AlertCondition
from shoal.core.runs.records import EventKind
from shoal.sql.driver.connection import Connection
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.schema.tables import alert_condition, alert_member, project
from shoal.sql.statements.rows import leave_out, readable

_C, _M = alert_condition.c, alert_member.c
Key = tuple[str, str, str]  # project, rule, subject


class AlertConditions:
    """The tables ``alert_condition`` and ``alert_member``. A change of a condition is an event."""

    def __init__(self, connection: Connection, events: Events) -> None:
        self._connection, self._events = connection, events

    async def all(self) -> dict[Key, AlertCondition]:
        """Return the conditions that hold, as they were found; without rows of unknown triggers.

        If such a condition still holds, it begins again.
        """
        query = select(alert_condition, project.c.name.label("project")).join_from(
            alert_condition, project
        )
        rows = await self._connection.rows(query)
        found = readable(rows, _condition, "alert condition", leave_out, key="subject")
        return {one.key: one for one in found}

    async def begin(self, conditions: Iterable[AlertCondition], at: datetime) -> None:
        """Store conditions that hold from now on, in place of rows that ``all`` leaves out."""
        conditions = list(conditions)
        homes = await self._homes({one.project for one in conditions})
        conditions = [one for one in conditions if one.project in homes]
        for one in conditions:
            values = {
                "project_id": homes[one.project],
                "rule": one.rule,
                "subject": one.subject,
                "trigger": one.trigger,
                "workflow": one.workflow,
                "since": at,
            }
            await self._connection.execute(
                delete(alert_condition).where(
                    _C.project_id == values["project_id"],
                    _C.rule == one.rule,
                    _C.subject == one.subject,
                )
            )
            await self._connection.execute(insert(alert_condition).values(values))
        await self._events.add([_event(one, True, at) for one in conditions])

    async def end(
        self,
        conditions: Collection[AlertCondition],
        at: datetime,
        *,
        is_told: bool = True,
        is_event: bool = True,
    ) -> None:
        """Remove conditions that hold no more.

        Not ``is_told``: their alerts end without a message. Not ``is_event``: their rule is gone,
        and their alerts stay as they are.
        """
        homes = await self._homes({one.project for one in conditions})
        for one in conditions:
            await self._connection.execute(
                delete(alert_condition).where(
                    _C.project_id == homes.get(one.project),
                    _C.rule == one.rule,
                    _C.subject == one.subject,
                )
            )
        if is_event:
            await self._events.add([_event(one, False, at, is_told) for one in conditions])

    async def _homes(self, names: Collection[str]) -> dict[str, int]:
        rows = await self._connection.rows(
            select(project.c.name, project.c.id).where(project.c.name.in_(sorted(names)))
        )
        return {row.name: row.id for row in rows}

    # -- members ----------------------------------------------------------------------------------

    async def members(self, kind: str) -> dict[str, datetime | None]:
        """Return the members of a kind that were seen, and when they were found to be gone.

        A time that cannot be read counts as None: the member is looked for again.
        """
        query = select(_M.name, _M.gone_at).where(_M.kind == kind)
        rows = await self._connection.rows(query)
        return {
            row.name: row.gone_at if isinstance(row.gone_at, datetime) else None for row in rows
        }

    async def note_members(self, kind: str, changes: Mapping[str, datetime | None]) -> None:
        """Store since when members are gone; None: they are there."""
        for name, gone_at in changes.items():
            row = {"kind": kind, "name": name, "gone_at": gone_at}
            await self._connection.insert_new(alert_member, ["kind", "name"], row)
            await self._connection.execute(
                update(alert_member).where(_M.kind == kind, _M.name == name).values(gone_at=gone_at)
            )

    async def forget_members(self, before: datetime) -> None:
        """Forget members that are gone since before ``before``."""
        await self._connection.execute(delete(alert_member).where(_M.gone_at < before))


def _condition(row: Row[Any]) -> AlertCondition:
    return AlertCondition(row.project, row.rule, row.subject, Trigger(row.trigger), row.workflow)


def _event(one: AlertCondition, holds: bool, at: datetime, is_told: bool = True) -> NewEvent:
    data: dict[str, object] = {
        "rule": one.rule,
        "trigger": one.trigger,
        "workflow": one.workflow,
        "subject": one.subject,
        "holds": holds,
        "reason": one.reason or None,
    }
    if not is_told:
        data["is_told"] = False
    return NewEvent(at, EventKind.ALERT_CONDITION, one.project, data)
