"""The job that reads events: what rules are about becomes alerts, what has recovered ends them.

Events are written in the transactions of the changes that they tell of, so none is lost; the
position in them is stored together with the alerts, so none is dealt with twice. An event that
cannot be worked with is quarantined alone, and the position moves past it in the same transaction.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from shoal.alert.jobs.catalog import Catalog, Rule
from shoal.alert.jobs.notifications import deliveries, next_at
from shoal.alert.jobs.quarantine import quarantined
from shoal.core.alerts.occurrences import (
    MOMENTS,
    Occurrence,
    Recovery,
    Trigger,
    occurrence,
    recovery,
    settled,
    warned,
)
from shoal.core.alerts.records import Alert, AlertState, DeliveryKind, NewAlert, NewDelivery
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.core.runs.records import ChangeEvent, EventKind, Instance
from shoal.core.untrusted import read_count
from shoal.sql import Database, EventTail, UnitOfWork
from shoal.sql.errors import NotFound
from shoal.sql.isolation import is_outage, isolate
from shoal.sql.repositories.alerts.jobs import READING

log = structlog.get_logger()

RECOVERED_S = 5.0  # recoveries are collected so long
_BATCH = 500  # events
_IDLE = timedelta(seconds=30)  # without a rule the position is stored this often
_RETRY_EVERY = timedelta(seconds=2)  # so often requests to retry events are looked for
_OF_FAILURES = frozenset({Trigger.TASK_FAILED, Trigger.TASK_RETRYING})
_WARNED = Trigger.TASK_WARNED
_OF_DECISIONS = frozenset({EventKind.TASK_STATE, EventKind.INSTANCE_STATE})
_DECISION = 1_000  # events of a decision that are read at once


class EventReader:
    """Deals with events, batch by batch, for one epoch of the job."""

    def __init__(
        self, database: Database, epoch: int, poll_s: float, clock: Callable[[], datetime]
    ) -> None:
        self._database, self._epoch = database, epoch
        self._poll_s, self._clock = poll_s, clock
        self._catalog = Catalog()
        self._retries_at = clock()

    async def run(self) -> None:
        """Read until cancelled. Raises JobTaken, SqlError."""
        async with self._database.unit_of_work() as uow:
            job = await uow.alert_jobs.begin(READING, self._epoch)
            await uow.commit()
        tail = EventTail(self._database, after=job.position, limit=_BATCH)
        while True:
            async with self._database.unit_of_work(read_only=True) as uow:
                await self._catalog.refresh(uow, self._clock())
            if self._clock() >= self._retries_at:
                await self._retry()
                self._retries_at = self._clock() + _RETRY_EVERY
            if not self._catalog.rules:
                tail = await self._pass_over()
            elif batch := await tail.next_batch():
                await self._deal_with(batch)
            else:
                await asyncio.sleep(self._poll_s)

    async def _pass_over(self) -> EventTail:
        """Let events pass for a while, or until there is a rule: none is about earlier ones."""
        tail = EventTail(self._database, limit=_BATCH)
        await self._store(await tail.start())
        began = self._clock()
        while not self._catalog.rules and self._clock() < began + _IDLE:
            await asyncio.sleep(self._poll_s)
            async with self._database.unit_of_work(read_only=True) as uow:
                await self._catalog.refresh(uow, self._clock())
        return tail

    async def _store(self, position: int | None) -> None:
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(READING, self._epoch, position)
            await uow.commit()

    async def _deal_with(self, batch: Sequence[ChangeEvent]) -> None:
        """Store what a batch of events means; an event that nothing can be made of is skipped."""

        async def deal(events: Sequence[ChangeEvent]) -> None:
            behind = [one for one in batch if one.id > events[-1].id]
            await self._store_meaning(events, behind)

        await isolate(batch, deal, self._skip)

    async def _retry(self) -> None:
        """Deal with skipped events again whose retry was requested; the position stays."""
        async with self._database.unit_of_work(read_only=True) as uow:
            wanted = await uow.quarantine.requested(ItemConsumer.ALERTS, [ItemKind.EVENT])
        for one in wanted:
            number = read_count(one.item) or 0
            async with self._database.unit_of_work(read_only=True) as uow:
                found = await uow.events.after(number - 1, 1, until=number)
            try:
                if not found:
                    raise NotFound("event", one.item)
                await self._store_meaning(found, (), retried=one)
            except Exception as error:
                if is_outage(error):
                    raise
                record = quarantined(
                    ItemKind.EVENT,
                    one.item,
                    error,
                    self._clock(),
                    project=one.project,
                    workflow=one.workflow,
                    is_skipped=True,
                )
                async with self._database.unit_of_work() as uow:
                    await uow.alert_jobs.require(READING, self._epoch)
                    await uow.quarantine.note(record)
                    await uow.commit()

    async def _skip(self, event: ChangeEvent, error: Exception) -> None:
        """Quarantine an event, and store that it has been dealt with."""
        record = quarantined(
            ItemKind.EVENT,
            event.id,
            error,
            self._clock(),
            project=event.project,
            workflow=text if isinstance(text := event.data.get("workflow"), str) else None,
            is_skipped=True,
        )
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(READING, self._epoch, event.id)
            await uow.quarantine.note(record)
            await uow.commit()

    async def _store_meaning(
        self,
        batch: Sequence[ChangeEvent],
        behind: Sequence[ChangeEvent],
        retried: QuarantinedItem | None = None,
    ) -> None:
        """Store what events mean, and that they have been dealt with; ``behind``: known later ones.

        ``retried``: the record of the event of ``batch``, which lies before the position. One
        transaction: an error leaves everything as it was.
        """
        now = self._clock()
        async with self._database.unit_of_work() as uow:
            if retried is None:
                await uow.alert_jobs.require(READING, self._epoch, batch[-1].id)
            else:
                await uow.alert_jobs.require(READING, self._epoch)
                await uow.quarantine.remove([(retried.kind, retried.item)], retried.consumer)
            matched = await self._matched(uow, batch, behind)
            ends = [found for event in batch if (found := recovery(event)) is not None]
            runs = await self._runs(uow, matched, ends)
            alerts = await uow.alerts.add(
                [self._alert(happened, rule, runs) for happened, rule in matched]
            )
            wanted = await self._told(uow, alerts, now)
            wanted += await self._resolved(uow, ends, runs, now)
            await uow.deliveries.collect(wanted, now)
            await uow.commit()
        if alerts:
            log.info("alerts", count=len(alerts), messages=len(wanted))

    # -- what rules are about -----------------------------------------------------------------

    async def _matched(
        self, uow: UnitOfWork, batch: Sequence[ChangeEvent], behind: Sequence[ChangeEvent]
    ) -> list[tuple[Occurrence, Rule]]:
        found: list[tuple[Occurrence, Rule]] = []
        for place, event in enumerate(batch):
            rules = self._catalog.rules.get(event.project)
            happened = occurrence(event) if rules else None
            if happened is None or not rules:
                continue
            wanted = {trigger for rule in rules.values() for trigger in rule.spec.triggers}
            if happened.trigger is Trigger.TASK_FAILED and wanted & _OF_FAILURES:
                happened = await self._final_or_not(uow, happened, [*batch[place + 1 :], *behind])
            found += [(happened, rule) for rule in rules.values() if rule.is_about(happened)]
            if happened.trigger is Trigger.TASK_SUCCEEDED and Trigger.TASK_WARNED in wanted:
                found += await self._warned(uow, happened, rules.values())
        labelled = {one.instance_id for one, rule in found if rule.spec.labels and one.instance_id}
        labels = await uow.labels.of(labelled) if labelled else {}
        return [
            (happened, rule)
            for happened, rule in found
            if not rule.spec.labels
            or rule.is_about(happened, labels.get(happened.instance_id or 0, {}))
        ]

    async def _warned(
        self, uow: UnitOfWork, succeeded: Occurrence, rules: Iterable[Rule]
    ) -> list[tuple[Occurrence, Rule]]:
        """Return what is about checks of data that only warn; its outputs say that."""
        about = [one for one in rules if one.is_about(replace(succeeded, trigger=_WARNED))]
        if not about or succeeded.task_instance_id is None:
            return []
        attempts = await uow.tasks.known([succeeded.task_instance_id])
        happened = warned(succeeded, attempts[0].outputs) if attempts else None
        return [(happened, rule) for rule in about] if happened is not None else []

    async def _final_or_not(
        self, uow: UnitOfWork, failed: Occurrence, behind: Sequence[ChangeEvent]
    ) -> Occurrence:
        """Return a failed attempt as what it is: the last one, or one that another follows.

        All events of a decision are visible together, but ids of other transactions may lie
        between them, with any time. So only a later decision about the same run proves that
        ``behind`` has all of this one.
        """
        run = failed.instance_id
        near = [one for one in behind if one.workflow_instance_id == run]
        found = settled(failed, near)
        if found is not failed or any(
            one.kind in _OF_DECISIONS and one.at > failed.at for one in near
        ):
            return found
        position = failed.event_id
        while True:
            page = await uow.events.after(position, _DECISION, run, at=failed.at)
            found = settled(failed, page)
            if found is not failed or len(page) < _DECISION:
                return found
            position = page[-1].id

    async def _runs(
        self,
        uow: UnitOfWork,
        matched: Sequence[tuple[Occurrence, Rule]],
        ends: Sequence[Recovery],
    ) -> dict[int, Instance]:
        """Return the runs that are spoken of; of recoveries only those that may end an alert."""
        wanted = {one.instance_id for one, _ in matched}
        wanted |= {one.instance_id for one in ends}
        found = await uow.instances.known(sorted(one for one in wanted if one is not None))
        return {one.id: one for one in found}

    def _alert(self, happened: Occurrence, rule: Rule, runs: dict[int, Instance]) -> NewAlert:
        run = runs.get(happened.instance_id or 0)
        return NewAlert(
            project=happened.project,
            rule=rule.name,
            trigger=happened.trigger,
            severity=rule.spec.severity,
            subject=happened.subject,
            workflow=happened.workflow,
            event_id=happened.event_id,
            at=happened.at,
            state=AlertState.TOLD if happened.trigger in MOMENTS else AlertState.OPEN,
            instance_id=happened.instance_id,
            logical_time=run.logical_time if run is not None else None,
            task=happened.task,
            task_instance_id=happened.task_instance_id,
            reason=happened.reason,
        )

    async def _told(
        self, uow: UnitOfWork, alerts: Sequence[Alert], now: datetime
    ) -> list[NewDelivery]:
        """Return the first messages about new alerts; what is silenced waits for the end of it."""
        wanted: list[NewDelivery] = []
        for alert in alerts:
            rule = self._catalog.rule(alert.project, alert.rule)
            if rule is None:
                continue
            silence = self._catalog.silence(alert, alert.rule, now)
            if silence is not None:
                await uow.alerts.schedule(alert.id, silence.until, 0, silence.id)
                continue
            due_at = now + timedelta(seconds=rule.group_for)
            wanted += deliveries(
                self._catalog, alert, rule, rule.receivers, DeliveryKind.FIRING, due_at
            )
            if alert.state is AlertState.OPEN and (again := next_at(rule, alert, 0, now)):
                await uow.alerts.schedule(alert.id, again, 0, None)
        return wanted

    # -- what has recovered -------------------------------------------------------------------

    async def _resolved(
        self,
        uow: UnitOfWork,
        ends: Sequence[Recovery],
        runs: dict[int, Instance],
        now: datetime,
    ) -> list[NewDelivery]:
        """End alerts whose cause is gone; return the messages that say so to who was told."""
        about = {(one.project, subject) for one in ends for subject in one.subjects}
        stand = await uow.alerts.open_about(about) if about else []
        over = {one.id: end for one in stand if (end := _end(one, ends, runs)) is not None}
        await uow.alerts.resolve({number: end.at for number, end in over.items()})
        told = [number for number, end in over.items() if end.is_told]
        places = await uow.deliveries.places(told)
        wanted = []
        for alert in stand:
            rule = self._catalog.rule(alert.project, alert.rule)
            if alert.id in over and (rule is None or rule.tell_recovery):
                wanted += [
                    NewDelivery(
                        project=one.project,
                        rule=one.rule,
                        receiver=one.receiver,
                        channel=one.channel,
                        recipients=one.recipients,
                        kind=DeliveryKind.RESOLVED,
                        due_at=now + timedelta(seconds=RECOVERED_S),
                        alerts=(alert.id,),
                    )
                    for one in places.get(alert.id, ())
                    if one.kind in (DeliveryKind.FIRING, DeliveryKind.ESCALATION)
                ]
        return wanted


def _end(alert: Alert, ends: Sequence[Recovery], runs: dict[int, Instance]) -> Recovery | None:
    """Return what has ended the cause of an alert; None: it goes on.

    What a run for an earlier logical time achieves says nothing about a later one.
    """
    for one in ends:
        if (
            one.project != alert.project
            or alert.subject not in one.subjects
            or one.event_id <= alert.event_id
        ):
            continue
        run = runs.get(one.instance_id or 0)
        if run is None or alert.logical_time is None or run.logical_time >= alert.logical_time:
            return one
    return None
