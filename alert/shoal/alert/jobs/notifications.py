"""Who is told of alerts, and when."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog

from shoal.alert.jobs.catalog import Catalog
from shoal.core.alerts.records import Alert, DeliveryKind, NewDelivery
from shoal.core.alerts.rules import RuleSpec, Severity
from shoal.core.alerts.times import later, quiet_until

log = structlog.get_logger()


def deliveries(
    catalog: Catalog,
    alert: Alert,
    rule: RuleSpec,
    receivers: Iterable[str],
    kind: DeliveryKind,
    due_at: datetime,
) -> list[NewDelivery]:
    """Return the messages to all places of these receivers; quiet hours put them off."""
    if rule.severity is not Severity.CRITICAL:
        due_at = quiet_until(rule.quiet, due_at) or due_at
    found = []
    for name in receivers:
        receiver = catalog.receivers.get((alert.project, name))
        if receiver is None:
            log.warning("an alert has no receiver", rule=alert.rule, receiver=name, alert=alert.id)
            continue
        found += [
            NewDelivery(
                project=alert.project,
                rule=alert.rule,
                receiver=name,
                channel=target.channel,
                recipients=tuple(target.to),
                kind=kind,
                due_at=due_at,
                alerts=(alert.id,),
            )
            for target in receiver.targets(due_at)
        ]
    return found


def next_at(rule: RuleSpec, alert: Alert, steps: int, now: datetime) -> datetime | None:
    """Return when the next reminder of an alert that goes on is due; None: never.

    ``steps``: escalations that have been. All times count from the first message.
    """
    first = alert.at + timedelta(seconds=rule.group_for)
    times = []
    if steps < len(rule.escalation):
        times.append(later(first, rule.escalation[steps].after))
    if rule.repeat_every is not None:
        times.append(later(max(first, now), rule.repeat_every))
    return min((one for one in times if one is not None), default=None)
