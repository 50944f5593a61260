"""Messages about alerts: collected, claimed by the server that sends them, and how it went."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, and_, func, insert, select, update

from shoal.core.alerts.records import AlertDelivery, DeliveryKind, DeliveryState, NewDelivery, Try
from shoal.core.alerts.shares import share_of
from shoal.core.runs.records import EventKind
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import NotFound
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.schema.tables import IS_UNSENT, alert_delivery, alert_mention, alert_try, project
from shoal.sql.statements.rows import (
    OnUnreadable,
    enough,
    leave_out,
    readable,
    record_of,
    require_numbers,
)

_D, _M, _T = alert_delivery.c, alert_mention.c, alert_try.c
_TOGETHER = 200  # in one statement
_S = DeliveryState

_DeliveryList = list[AlertDelivery]
_TryList = list[Try]


class Deliveries:
    """The tables ``alert_delivery``, ``alert_mention`` and ``alert_try``."""

    def __init__(self, connection: Connection, events: Events) -> None:
        self._connection, self._events = connection, events

    async def collect(self, wanted: Sequence[NewDelivery], now: datetime) -> None:
        """Store messages; one that was never tried takes up what belongs to the same place.

        The earlier time of both counts.

        Those that are held up here have to be of projects that there are.
        """
        for one in _merged(wanted):
            home = select(project.c.id).where(project.c.name == one.project).scalar_subquery()
            same = and_(
                _D.project_id == home,
                _D.share == share_of(one.project, one.channel),
                _D.rule == one.rule,
                _D.receiver == one.receiver,
                _D.channel == one.channel,
                _D.kind == one.kind,
                _D.tries == 0,
                _D.state == _S.PENDING,
                IS_UNSENT,
            )
            waiting = await self._connection.rows(
                select(alert_delivery).where(same).order_by(_D.id).with_for_update()
            )
            number = next((w.id for w in waiting if tuple(w.recipients) == one.recipients), None)
            if number is None or one.kind is DeliveryKind.TEST:
                made = await self._connection.changed(
                    insert(alert_delivery)
                    .values(
                        project_id=home,
                        rule=one.rule,
                        receiver=one.receiver,
                        channel=one.channel,
                        recipients=list(one.recipients),
                        kind=one.kind,
                        share=share_of(one.project, one.channel),
                        state=_S.PENDING,
                        due_at=one.due_at,
                        tries=0,
                        created_at=now,
                    )
                    .returning(_D.id)
                )
                number = made[0].id
            else:  # a message that waits for the end of quiet hours delays none that does not
                await self._connection.execute(
                    update(alert_delivery)
                    .where(_D.id == number, _D.due_at > one.due_at)
                    .values(due_at=one.due_at)
                )
            for some in batched(one.alerts, _TOGETHER):
                mentions = [{"alert_id": about, "delivery_id": number} for about in some]
                await self._connection.insert_new(
                    alert_mention, ["alert_id", "delivery_id"], mentions
                )

    async def due(
        self,
        share: int,
        now: datetime,
        limit: int,
        busy: Collection[tuple[str, str]] = (),
        on_unreadable: OnUnreadable = leave_out,
        *,
        each: int = 1_000,
        after: str = "",
    ) -> list[AlertDelivery]:
        """Return messages of a share whose time has come, in the order in which they may leave.

        Projects take turns, by name, from the one behind ``after``: one message of each, then a
        second one of each, and so on. Inside a project its channels take turns, and of a channel
        the message that is due longest comes first. So a project with thousands of messages delays
        one of another project by one of its own.

        ``each``: the most of one channel. ``busy``: (project, channel) of which none is wanted.
        ``on_unreadable`` gets the rows among them that cannot be read.
        """
        of_channel = (
            func.row_number()
            .over(partition_by=(_D.project_id, _D.channel), order_by=(_D.due_at, _D.id))
            .label("of_channel")
        )
        waiting = (
            select(_D.id, _D.project_id, _D.due_at, project.c.name, of_channel)
            .join_from(alert_delivery, project)
            .where(_D.share == share, IS_UNSENT, _D.state == _S.PENDING, _D.due_at <= now)
        )
        for home, channel in sorted(busy):
            waiting = waiting.where(~and_(project.c.name == home, _D.channel == channel))
        one = waiting.subquery("waiting").c
        turn = func.row_number().over(
            partition_by=one.project_id, order_by=(one.of_channel, one.due_at, one.id)
        )
        turns = (
            select(one.id, turn.label("turn"), (one.name <= after).label("is_later"))
            .where(one.of_channel <= each)
            .subquery("turns")
            .c
        )
        query = (
            _deliveries()
            .join(turns.id.table, turns.id == _D.id)
            .order_by(turns.turn, turns.is_later, project.c.name)
        )
        rows = await self._connection.rows(query.limit(limit))
        return readable(rows, _delivery, "alert delivery", on_unreadable)

    async def claim(self, delivery_id: int) -> bool:
        """Take a message for sending; False: it is no longer to be sent, or not now."""
        changed = await self._connection.execute(
            update(alert_delivery)
            .where(_D.id == delivery_id, _D.state == _S.PENDING)
            .values(state=_S.SENDING, tries=_D.tries + 1)
        )
        return changed.rowcount == 1

    async def settle(
        self,
        delivery_id: int,
        state: DeliveryState,
        at: datetime,
        answer: str | None,
        due_at: datetime | None = None,
    ) -> None:
        """Store how a message stands; ``due_at``: when a PENDING one is to be sent.

        Never the first write of a transaction: see ``EventTail``.
        """
        values: dict[str, Any] = {"state": state, "answer": answer}
        if due_at is not None:
            values["due_at"] = due_at
        if state is _S.SENT:
            values["sent_at"] = at
        changed = await self._connection.execute(
            update(alert_delivery).where(_D.id == delivery_id, IS_UNSENT).values(values)
        )
        row = await self._connection.first(_deliveries().where(_D.id == delivery_id))
        if changed.rowcount and row is not None:
            data = {"delivery_id": delivery_id, "channel": row.channel, "state": state}
            event = NewEvent(at, EventKind.ALERT_DELIVERY, row.project, data)
            await self._events.add([event])

    async def add_try(self, delivery_id: int, one: Try) -> None:
        """Store an attempt to send."""
        await self._connection.insert_new(
            alert_try, ["delivery_id", "number"], {"delivery_id": delivery_id, **vars(one)}
        )

    async def send_again(self, delivery_id: int, now: datetime) -> bool:
        """Have a message sent again that has failed or was sent; False: it is no such message.

        Never the first write of a transaction: see ``EventTail``.
        """
        changed = await self._connection.execute(
            update(alert_delivery)
            .where(_D.id == delivery_id, _D.state.in_([_S.FAILED, _S.SENT]))
            .values(state=_S.PENDING, due_at=now)
        )
        row = await self._connection.first(_deliveries().where(_D.id == delivery_id))
        if changed.rowcount and row is not None:
            data = {"delivery_id": delivery_id, "channel": row.channel, "state": _S.PENDING}
            await self._events.add([NewEvent(now, EventKind.ALERT_DELIVERY, row.project, data)])
        return changed.rowcount == 1

    async def take_back(self, share: int, now: datetime) -> int:
        """Have those sent again that a server had begun to send when it died; return how many."""
        changed = await self._connection.execute(
            update(alert_delivery)
            .where(_D.share == share, IS_UNSENT, _D.state == _S.SENDING)
            .values(state=_S.PENDING, due_at=now)
        )
        return changed.rowcount

    async def places(self, alert_ids: Collection[int]) -> Mapping[int, list[AlertDelivery]]:
        """Return the messages that have told of each alert, or may have."""
        found: dict[int, list[AlertDelivery]] = {}
        for some in batched(sorted(alert_ids), _TOGETHER):
            rows = await self._connection.rows(
                _deliveries()
                .add_columns(_M.alert_id.label("about"))
                .join(alert_mention, _M.delivery_id == _D.id)
                .where(_M.alert_id.in_(some), _D.tries > 0)
                .order_by(_D.id)
            )
            for row in rows:
                for one in readable([row], _delivery, "alert delivery", leave_out):
                    found.setdefault(row.about, []).append(one)
        return found

    async def mentioned(self, delivery_id: int, limit: int) -> list[int]:
        """Return the alerts that a message is about, by id, ``limit`` at most."""
        query = select(_M.alert_id).where(_M.delivery_id == delivery_id).order_by(_M.alert_id)
        return [row.alert_id for row in await self._connection.rows(query.limit(limit))]

    async def of_alert(self, alert_id: int) -> list[AlertDelivery]:
        """Return all messages that mention an alert, the first one first."""
        query = (
            _deliveries()
            .join(alert_mention, _M.delivery_id == _D.id)
            .where(_M.alert_id == alert_id)
            .order_by(_D.id)
        )
        rows = await self._connection.rows(query.limit(1000))
        return readable(rows, _delivery, "alert delivery", leave_out)

    async def get(self, home: str, delivery_id: int) -> AlertDelivery:
        """Return a message. Raises NotFound."""
        query = _deliveries().where(project.c.name == home, _D.id == delivery_id)
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("alert delivery", f"{home}/{delivery_id}")
        return readable([row], _delivery, "alert delivery")[0]

    async def list(
        self,
        home: str,
        states: Collection[DeliveryState] = (),
        channel: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> _DeliveryList:
        """Return a project's messages, newest first, older than ``before``."""
        query = _deliveries().where(project.c.name == home).order_by(_D.id.desc())
        if states:
            query = query.where(_D.state.in_(sorted(states)))
        if channel is not None:
            query = query.where(_D.channel == channel)
        if before is not None:
            query = query.where(_D.id < before)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)),
            _delivery,
            "alert delivery",
            limit,
        )

    async def tries(self, delivery_id: int) -> _TryList:
        """Return the attempts to send a message, the first one first."""
        query = select(alert_try).where(_T.delivery_id == delivery_id).order_by(_T.number)
        return [
            Try(row.number, row.at, row.took_s, row.is_sent, row.answer)
            for row in await self._connection.rows(query)
        ]


def _merged(wanted: Sequence[NewDelivery]) -> list[NewDelivery]:
    """Return them with those for one place, and of one kind, joined; the earliest time counts."""
    by_place: dict[tuple[object, ...], NewDelivery] = {}
    for one in wanted:
        place = (one.project, one.rule, one.receiver, one.channel, one.recipients, one.kind)
        if (other := by_place.get(place)) is not None:
            together = tuple(dict.fromkeys((*other.alerts, *one.alerts)))
            one = replace(other, due_at=min(other.due_at, one.due_at), alerts=together)
        by_place[place] = one
    return list(by_place.values())


def _deliveries() -> Select[Any]:
    return select(alert_delivery, project.c.name.label("project")).join_from(
        alert_delivery, project
    )


def _delivery(row: Row[Any]) -> AlertDelivery:
    require_numbers(row, "tries")
    return record_of(
        AlertDelivery,
        row,
        recipients=tuple(row.recipients),
        kind=DeliveryKind(row.kind),
        alerts=(),
        state=DeliveryState(row.state),
    )
