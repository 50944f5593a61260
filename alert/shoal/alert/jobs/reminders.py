"""The job that looks after alerts that go on: reminders, escalations, the ends of silences.

It also deletes what is older than alerts are kept.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog

from shoal.alert.jobs.catalog import MOST_SILENCES, Catalog
from shoal.alert.jobs.notifications import deliveries, next_at
from shoal.alert.jobs.quarantine import quarantined
from shoal.core.alerts.records import Alert, AlertState, DeliveryKind, NewDelivery
from shoal.core.alerts.rules import RuleSpec
from shoal.core.alerts.times import later
from shoal.core.runs.quarantine import ItemConsumer, ItemKind
from shoal.runtime.periodic_jobs import PeriodicJobs
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import UnreadableRow
from shoal.sql.isolation import isolate

log = structlog.get_logger()

ATTENTION = "attention"
_AT_ONCE = 200  # alerts in one transaction
_PRUNED_AT_ONCE = 500
_PRUNE_EVERY_S = 600.0
_WAKE_EVERY_S = 60.0
_AGAIN_AFTER = timedelta(minutes=10)  # an alert that could not be attended to


class Reminders:
    """Does the job for one of its epochs."""

    def __init__(
        self,
        database: Database,
        epoch: int,
        poll_s: float,
        clock: Callable[[], datetime],
        keep: timedelta | None,
    ) -> None:
        """``keep``: how long alerts are kept; None: for ever."""
        self._database, self._epoch, self._poll_s = database, epoch, poll_s
        self._clock, self._keep = clock, keep
        self._catalog = Catalog()

    async def run(self) -> None:
        """Look until cancelled. Raises JobTaken, SqlError."""
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.begin(ATTENTION, self._epoch)
            await uow.commit()
        jobs = PeriodicJobs(self._clock)

        async def attend() -> None:
            is_full = await self._look() == _AT_ONCE
            # From the end: on a slow database looks would follow each other without a pause.
            jobs.next_in(ATTENTION, 0.0 if is_full else self._poll_s)

        jobs.every(ATTENTION, attend, self._poll_s)
        jobs.every("alerts of ended silences", self._wake, _WAKE_EVERY_S)
        jobs.every("pruning of alerts", self._prune, _PRUNE_EVERY_S)
        await jobs.run()

    async def _look(self) -> int:
        now = self._clock()
        async with self._database.unit_of_work(read_only=True) as uow:
            is_changed = await self._catalog.refresh(uow, now)
        if is_changed:
            await self._wake()
        async with self._database.unit_of_work(read_only=True) as uow:
            bad: list[UnreadableRow] = []
            due = await uow.alerts.due(now, _AT_ONCE, bad.append)
            keys = (
                await uow.quarantine.keys(ItemConsumer.ALERTS, [ItemKind.ALERT]) if due else set()
            )
        for row in bad:
            await self._put_off(int(str(row.key)), None, row, now)
        if not due:
            return 0
        held = {item for _, item in keys}

        async def deal(ids: Sequence[int]) -> None:
            async with self._database.unit_of_work() as uow:
                await uow.alert_jobs.require(ATTENTION, self._epoch)
                # Read anew: some may have been acknowledged or resolved meanwhile.
                wanted: list[NewDelivery] = []
                for alert in await uow.alerts.known(ids):
                    is_due = alert.next_at is not None and alert.next_at <= now
                    if is_due and alert.state is AlertState.OPEN:
                        wanted += await self._attend(uow, alert, now)
                await uow.deliveries.collect(wanted, now)
                cleared = [(ItemKind.ALERT, str(one)) for one in ids if str(one) in held]
                await uow.quarantine.remove(cleared, ItemConsumer.ALERTS)
                await uow.commit()

        async def skip(number: int, error: Exception) -> None:
            await self._put_off(number, projects.get(number), error, now)

        projects = {one.id: one.project for one in due}
        await isolate([one.id for one in due], deal, skip)
        return len(due)

    async def _put_off(
        self, alert_id: int, project: str | None, error: Exception, now: datetime
    ) -> None:
        """Quarantine an alert, and look at it again later."""
        record = quarantined(
            ItemKind.ALERT, alert_id, error, now, project=project, is_skipped=False
        )
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(ATTENTION, self._epoch)
            await uow.alerts.put_off(alert_id, now + _AGAIN_AFTER)
            await uow.quarantine.note(record)
            await uow.commit()

    async def _attend(self, uow: UnitOfWork, alert: Alert, now: datetime) -> list[NewDelivery]:
        """Return what is to be said of an alert now, and store when it is due again."""
        rule = self._catalog.rule(alert.project, alert.rule)
        if rule is None:
            await uow.alerts.schedule(alert.id, None, alert.steps, alert.silenced_by)
            return []
        silence = self._catalog.silence(alert, alert.rule, now)
        if silence is not None:
            await uow.alerts.schedule(alert.id, silence.until, alert.steps, silence.id)
            return []
        kind, receivers, steps = _next(alert, rule, now)
        again = next_at(rule, alert, steps, now)
        await uow.alerts.schedule(alert.id, again, steps, None)
        return deliveries(self._catalog, alert, rule, receivers, kind, now)

    async def _wake(self) -> None:
        """Attend to alerts whose silence was ended before its time.

        Also now and then: a server that still knew the silence may have made an alert since.
        """
        now = self._clock()
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(ATTENTION, self._epoch)
            going_on = await uow.alert_definitions.silences(None, now, limit=MOST_SILENCES)
            if woken := await uow.alerts.wake([one.id for one in going_on], now):
                log.info("silences have ended", alerts=woken)
            await uow.commit()

    async def _prune(self) -> None:
        now = self._clock()
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(ATTENTION, self._epoch)
            before = None if self._keep is None else now - self._keep
            await uow.quarantine.prune(ItemConsumer.ALERTS, before)
            # Those that have ended meanwhile are never due again.
            held = await uow.quarantine.keys(ItemConsumer.ALERTS, [ItemKind.ALERT])
            going_on = await uow.alerts.still_open([int(item) for _, item in held])
            over = [(kind, item) for kind, item in held if int(item) not in going_on]
            await uow.quarantine.remove(over, ItemConsumer.ALERTS)
            await uow.commit()
        if self._keep is None:
            return
        gone = _PRUNED_AT_ONCE
        while gone == _PRUNED_AT_ONCE:
            async with self._database.unit_of_work() as uow:
                await uow.alert_jobs.require(ATTENTION, self._epoch)
                gone = await uow.alerts.prune(now - self._keep, _PRUNED_AT_ONCE)
                await uow.commit()


def _next(alert: Alert, rule: RuleSpec, now: datetime) -> tuple[DeliveryKind, tuple[str, ...], int]:
    """Return what is said of an alert that is due, to which receivers, and its escalations then."""
    if alert.silenced_by is not None and alert.told_at is None:
        return DeliveryKind.FIRING, rule.receivers, alert.steps
    first = alert.at + timedelta(seconds=rule.group_for)
    if alert.steps < len(rule.escalation):
        step = rule.escalation[alert.steps]
        due_at = later(first, step.after)
        if due_at is not None and due_at <= now:
            return DeliveryKind.ESCALATION, step.receivers, alert.steps + 1
    return DeliveryKind.REMINDER, rule.receivers, alert.steps
