"""Why a notification was sent, or not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from shoal.core.alerts.occurrences import Occurrence, Trigger, occurrence, settled, warned
from shoal.core.alerts.records import Alert, AlertDelivery, DefinitionKind, StoredAlertDefinition
from shoal.core.alerts.rules import RuleSpec, mismatch
from shoal.core.runs.records import ChangeEvent
from shoal.sql import UnitOfWork

_LATER = 1_000  # events of a run in which the next attempt of a task is looked for


@dataclass(frozen=True)
class Explained:
    """What a rule made of something that happened. ``reason`` None: ``alert``."""

    rule: str
    reason: str | None
    alert: Alert | None
    deliveries: Sequence[AlertDelivery] = ()


async def explain(
    uow: UnitOfWork, project: str, events: Sequence[ChangeEvent]
) -> list[tuple[Occurrence, list[Explained]]]:
    """Return, of what rules may be about, what became of it with each rule of the project."""
    rules = await uow.alert_definitions.list(project, DefinitionKind.RULE, limit=10_000)
    read = await uow.alert_jobs.position()
    found: list[tuple[Occurrence, list[Explained]]] = []
    for event in events:
        happened = occurrence(event)
        if happened is None:
            continue
        run = happened.instance_id
        if happened.trigger is Trigger.TASK_FAILED:
            later = await uow.events.after(event.id, _LATER, run)
            happened = settled(happened, later)
        if happened.trigger is Trigger.TASK_SUCCEEDED and happened.task_instance_id is not None:
            attempts = await uow.tasks.known([happened.task_instance_id])
            happened = (warned(happened, attempts[0].outputs) if attempts else None) or happened
        labels = (await uow.labels.of([run])).get(run, {}) if run is not None else {}
        alerts = {one.rule: one for one in await uow.alerts.of_event(project, event.id)}
        explained = []
        for definition in rules:
            if (alert := alerts.pop(definition.name, None)) is not None:
                explained.append(await _told(uow, alert))
            else:
                reason = _reason(definition, happened, labels, read)
                explained.append(Explained(definition.name, reason, None))
        # Rules that are gone since.
        explained += [await _told(uow, alert) for alert in alerts.values()]
        found.append((happened, explained))
    return found


async def _told(uow: UnitOfWork, alert: Alert) -> Explained:
    return Explained(alert.rule, None, alert, await uow.deliveries.of_alert(alert.id))


def _reason(
    definition: StoredAlertDefinition,
    happened: Occurrence,
    labels: Mapping[str, str],
    read: int | None,
) -> str:
    """Return why a rule made no alert of something."""
    try:
        rule = RuleSpec.model_validate(definition.spec)
    except ValidationError:
        return "the rule cannot be read"
    if happened.at < definition.created_at:
        return "the rule was made later"
    found = mismatch(definition.name, rule, happened, labels)
    if found is not None:
        return found
    if read is None or happened.event_id > read:
        return "no alert server has read it yet; is one running?"
    return "the rule was different, or disabled, when it happened"
