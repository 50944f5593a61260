"""Alerts: what rules have found, until its cause is gone."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, delete, exists, or_, select, update

from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.records import Alert, AlertState, DefinitionKind, NewAlert
from shoal.core.alerts.rules import Severity
from shoal.core.runs.records import EventKind
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import NotFound
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.schema.tables import (
    IS_OPEN_ALERT,
    alert,
    alert_definition,
    alert_delivery,
    alert_mention,
    alert_try,
    project,
    workflow,
)
from shoal.sql.statements.rows import (
    OnUnreadable,
    enough,
    leave_out,
    readable,
    record_of,
    require_numbers,
)

_A = alert.c
_TOGETHER = 200  # in one statement

_AlertList = list[Alert]


class Alerts:
    """The ``alert`` table."""

    def __init__(self, connection: Connection, events: Events) -> None:
        self._connection, self._events = connection, events

    async def add(self, found: Sequence[NewAlert]) -> _AlertList:
        """Store alerts but those that are stored already; return the new ones."""
        if not found:
            return []
        names = {one.project for one in found}
        rows = await self._connection.rows(
            select(project.c.name, project.c.id).where(project.c.name.in_(sorted(names)))
        )
        homes = {row.name: row.id for row in rows}
        found = [one for one in found if one.project in homes]
        [ids] = await self._connection.reserve_ids({alert: len(found)})
        stored = [
            {**_values(one), "id": number, "project_id": homes[one.project]}
            for number, one in zip(ids, found, strict=True)
        ]
        for some in batched(stored, _TOGETHER):
            await self._connection.insert_new(alert, ["event_id", "project_id", "rule"], some)
        made = await self.known(ids)
        await self._events.add([_event(one, one.state, one.at) for one in made])
        return made

    async def known(self, ids: Collection[int]) -> _AlertList:
        """Return those of these alerts that there are, by id."""
        found: list[Alert] = []
        for some in batched(sorted(ids), _TOGETHER):
            rows = await self._connection.rows(_alerts().where(_A.id.in_(some)).order_by(_A.id))
            found += readable(rows, _alert, "alert", leave_out)
        return found

    async def still_open(self, ids: Collection[int]) -> set[int]:
        """Return which of these alerts are open, also if they cannot be read."""
        found: set[int] = set()
        for some in batched(sorted(ids), _TOGETHER):
            rows = await self._connection.rows(select(_A.id).where(IS_OPEN_ALERT, _A.id.in_(some)))
            found |= {row.id for row in rows}
        return found

    async def of_event(self, home: str, event_id: int) -> _AlertList:
        """Return the alerts that rules of a project made of an event."""
        query = _alerts().where(_A.event_id == event_id, project.c.name == home).order_by(_A.id)
        return readable(await self._connection.rows(query), _alert, "alert", leave_out)

    async def get(self, home: str, alert_id: int) -> Alert:
        """Return an alert of a project. Raises NotFound."""
        query = _alerts().where(_A.id == alert_id, project.c.name == home)
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("alert", f"{home}/{alert_id}")
        return readable([row], _alert, "alert")[0]

    async def list(
        self,
        home: str,
        states: Collection[AlertState] = (),
        instance_id: int | None = None,
        workflow: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> _AlertList:
        """Return a project's alerts that fulfil all conditions, newest first, before ``before``."""
        query = _alerts().where(project.c.name == home).order_by(_A.id.desc())
        if states:
            query = query.where(_A.state.in_(sorted(states)))
        if instance_id is not None:
            query = query.where(_A.instance_id == instance_id)
        if workflow is not None:
            query = query.where(_A.workflow == workflow)
        if before is not None:
            query = query.where(_A.id < before)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _alert, "alert", limit
        )

    async def open_about(self, subjects: Collection[tuple[str, str]]) -> _AlertList:
        """Return the open alerts about any of these (project, subject)."""
        found: list[Alert] = []
        for some in batched(sorted(set(subjects)), _TOGETHER):
            any_of = or_(*(and_(project.c.name == home, _A.subject == s) for home, s in some))
            rows = await self._connection.rows(_alerts().where(IS_OPEN_ALERT, any_of))
            found += readable(rows, _alert, "alert", leave_out)
        return found

    async def resolve(self, ends: Mapping[int, datetime]) -> None:
        """End alerts, by id, at these times."""
        if not ends:
            return
        statement = update(alert)
        for number, at in ends.items():
            await self._connection.execute(
                statement.where(_A.id == number, IS_OPEN_ALERT).values(
                    state=AlertState.RESOLVED, resolved_at=at, next_at=None
                )
            )
        resolved = await self.known(ends)
        await self._events.add([_event(one, AlertState.RESOLVED, ends[one.id]) for one in resolved])

    async def due(
        self, now: datetime, limit: int, on_unreadable: OnUnreadable = leave_out
    ) -> _AlertList:
        """Return open alerts whose next reminder or escalation is due, the longest due first.

        ``on_unreadable`` gets the rows among them that cannot be read.
        """
        query = _alerts().where(IS_OPEN_ALERT, _A.next_at <= now).order_by(_A.next_at, _A.id)
        rows = await self._connection.rows(query.limit(limit))
        return readable(rows, _alert, "alert", on_unreadable)

    async def put_off(self, alert_id: int, next_at: datetime | None) -> None:
        """Look at an open alert again at ``next_at`` (None: never); all else about it stays."""
        await self._connection.execute(
            update(alert).where(_A.id == alert_id, IS_OPEN_ALERT).values(next_at=next_at)
        )

    async def schedule(
        self, alert_id: int, next_at: datetime | None, steps: int, silenced_by: int | None
    ) -> None:
        """Store when the next notification of an open alert is due, after so many escalations."""
        await self._connection.execute(
            update(alert)
            .where(_A.id == alert_id, IS_OPEN_ALERT)
            .values(next_at=next_at, steps=steps, silenced_by=silenced_by)
        )

    async def wake(self, silences: Collection[int], now: datetime) -> int:
        """Have alerts looked at now that wait for the end of a silence that there is no more.

        ``silences``: those that there are. Returns how many alerts were woken.
        """
        waiting = select(_A.silenced_by).where(IS_OPEN_ALERT, _A.silenced_by.is_not(None))
        rows = await self._connection.rows(waiting.where(_A.next_at > now).distinct())
        woken = 0
        for some in batched(sorted({row.silenced_by for row in rows} - set(silences)), _TOGETHER):
            changed = await self._connection.execute(
                update(alert)
                .where(IS_OPEN_ALERT, _A.silenced_by.in_(some), _A.next_at > now)
                .values(next_at=now)
            )
            woken += changed.rowcount
        return woken

    async def note_told(self, delivery_id: int, at: datetime) -> None:
        """Store that a message about these alerts has left, unless an earlier one has."""
        mentioned = select(alert_mention.c.alert_id).where(
            alert_mention.c.delivery_id == delivery_id
        )
        await self._connection.execute(
            update(alert).where(_A.id.in_(mentioned), _A.told_at.is_(None)).values(told_at=at)
        )

    async def acknowledge(self, home: str, alert_id: int, by: str, at: datetime) -> Alert:
        """Note an acknowledgement of an alert; the first one stays. Raises NotFound."""
        before = await self.get(home, alert_id)
        changed = await self._connection.execute(
            update(alert)
            .where(_A.id == alert_id, _A.acknowledged_at.is_(None))
            .values(acknowledged_at=at, acknowledged_by=by, next_at=None)
        )
        if changed.rowcount:
            await self._events.add([_event(before, "ACKNOWLEDGED", at)])
        return await self.get(home, alert_id)

    async def prune(self, before: datetime, limit: int) -> int:
        """Delete alerts that ended before ``before``, and their messages; return how many.

        At most ``limit``. Open alerts are kept: notifications of their ends are still to be sent.
        But old ones go whose end is never told, or is told of a newer open one.
        """
        has_ended = and_(
            _A.state != AlertState.OPEN, or_(_A.resolved_at.is_(None), _A.resolved_at < before)
        )
        old = select(_A.id).where(_A.at < before, or_(has_ended, _is_forsaken())).order_by(_A.id)
        ids = [row.id for row in await self._connection.rows(old.limit(limit))]
        for some in batched(ids, _TOGETHER):
            await self._connection.execute(
                delete(alert_mention).where(alert_mention.c.alert_id.in_(some))
            )
            await self._connection.execute(delete(alert).where(_A.id.in_(some)))
        unused = (
            select(alert_delivery.c.id)
            .where(
                alert_delivery.c.created_at < before,
                ~select(alert_mention.c.alert_id)
                .where(alert_mention.c.delivery_id == alert_delivery.c.id)
                .exists(),
            )
            .order_by(alert_delivery.c.id)
        )
        rows = await self._connection.rows(unused.limit(limit))
        for some in batched([row.id for row in rows], _TOGETHER):
            await self._connection.execute(
                delete(alert_try).where(alert_try.c.delivery_id.in_(some))
            )
            await self._connection.execute(
                delete(alert_delivery).where(alert_delivery.c.id.in_(some))
            )
        return len(ids)


def _is_forsaken() -> ColumnElement[bool]:
    """An open alert whose rule or workflow is gone, or with a newer one of the same about it."""
    newer = alert.alias("newer")
    has_rule = exists().where(
        alert_definition.c.project_id == _A.project_id,
        alert_definition.c.kind == DefinitionKind.RULE,
        alert_definition.c.name == _A.rule,
    )
    has_workflow = exists().where(
        workflow.c.project_id == _A.project_id, workflow.c.name == _A.workflow
    )
    is_repeated = exists().where(
        newer.c.project_id == _A.project_id,
        newer.c.subject == _A.subject,
        newer.c.rule == _A.rule,
        IS_OPEN_ALERT,  # of the newer one: the inner query's name comes first
        newer.c.id > _A.id,
    )
    is_orphan = or_(~has_rule, and_(_A.workflow != "", ~has_workflow), is_repeated)
    return and_(_A.state == AlertState.OPEN, is_orphan)


def _event(one: Alert, state: str, at: datetime) -> NewEvent:
    data = {
        "alert_id": one.id,
        "rule": one.rule,
        "trigger": one.trigger,
        "severity": one.severity,
        "workflow": one.workflow,
        "task": one.task,
        "state": state,
    }
    return NewEvent(at, EventKind.ALERT_STATE, one.project, data, one.instance_id)


def _alerts() -> Select[Any]:
    return select(alert, project.c.name.label("project")).join_from(alert, project)


def _values(one: NewAlert) -> dict[str, Any]:
    values = {**vars(one), "steps": 0}
    del values["project"]
    return values


def _alert(row: Row[Any]) -> Alert:
    require_numbers(row, "event_id", "steps")
    return record_of(
        Alert,
        row,
        trigger=Trigger(row.trigger),
        severity=Severity(row.severity),
        state=AlertState(row.state),
    )
