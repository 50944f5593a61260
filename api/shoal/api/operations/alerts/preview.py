"""What messages about alerts would say."""

from datetime import datetime

from shoal.api.web.errors import FieldError, InvalidRequest, TooManyRequests
from shoal.core.alerts.messages.composition import reworded, write
from shoal.core.alerts.messages.message import AlertMessage, MessageFacts
from shoal.core.alerts.occurrences import MOMENTS
from shoal.core.alerts.records import Alert, AlertDelivery, AlertState, DeliveryKind
from shoal.core.alerts.rules import RuleSpec
from shoal.runtime.side.process import WAIT_S, NoTurn
from shoal.runtime.side.templates import TemplateError, Templates
from shoal.sql import UnitOfWork


async def usual_message(
    uow: UnitOfWork, project: str, rule: RuleSpec, alert_id: int | None, now: datetime
) -> AlertMessage:
    """Return what a rule would send about an alert without its templates.

    ``alert_id``: None for one as an example. Raises NotFound.
    """
    if alert_id is None:
        alert = _example(project, rule, now)
    else:
        alert = await uow.alerts.get(project, alert_id)
    delivery = AlertDelivery(
        project, alert.rule, rule.receivers[0], "", (), DeliveryKind.FIRING, now
    )
    facts = MessageFacts(delivery, [alert], 1, {}, now)
    if alert_id is not None:
        facts = await uow.alert_facts.read(delivery, [alert_id], now)
    return write(facts, rule.language, "", "")


async def preview(
    templates: Templates, project: str, rule: RuleSpec, message: AlertMessage
) -> AlertMessage:
    """Return a usual message in the words of a rule's templates.

    Raises InvalidRequest, TooManyRequests.
    """
    words = {}
    for field in ("subject", "text"):
        template = getattr(rule.templates, field)
        try:
            known = {**message.facts, "text": message.text}
            words[field] = await templates.render(project, template, known) if template else ""
        except TemplateError as error:
            raise InvalidRequest([FieldError(f"rule.templates.{field}", str(error))]) from None
        except NoTurn as error:
            raise TooManyRequests(str(error), WAIT_S) from None
    return reworded(message, words["subject"], words["text"])


def _example(project: str, rule: RuleSpec, now: datetime) -> Alert:
    """Return an alert as the rule's first trigger would make it."""
    trigger = rule.triggers[0]
    workflow = next(iter(rule.workflows), "daily").replace("*", "daily").replace("?", "x")
    is_of_task = trigger.startswith("task.")
    task = next(iter(rule.tasks), "load").replace("*", "load") if is_of_task else None
    state = AlertState.TOLD if trigger in MOMENTS else AlertState.OPEN
    return Alert(
        project=project,
        rule="example",
        trigger=trigger,
        severity=rule.severity,
        subject="",
        workflow=workflow,
        event_id=0,
        at=now,
        state=state,
        task=task,
        reason="this is an example",
    )
