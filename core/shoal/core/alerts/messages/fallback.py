"""The message that is sent where the usual one cannot be written: it says less. Pure."""

from collections.abc import Sequence
from html import escape

from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.alerts.records import Alert, AlertDelivery
from shoal.core.alerts.rules import Severity
from shoal.core.errors import shortened
from shoal.core.untrusted import encodable

MOST_PLAIN = 50  # alerts that it lists
_LONGEST_LINE = 300  # characters
_ORDER = list(Severity)


def write_plain(
    delivery: AlertDelivery, alerts: Sequence[Alert], total: int, cluster: str, why: str
) -> AlertMessage:
    """Return a message that shows alerts as they are stored; it formats nothing that may fail.

    ``total``: how many alerts it is about. ``why``: why the usual message cannot be written.
    """
    severity = max((one.severity for one in alerts), key=_ORDER.index, default=Severity.WARNING)
    lines = [_line(one) for one in reversed(alerts)]
    what = lines[0] if lines else f"rule {delivery.rule}"
    subject = _short(f"[{severity}] {delivery.project}: {what}", 200)
    if total > len(lines):
        lines.append(f"and {total - len(lines):,} more alerts")
    lines += ["", f"The usual message cannot be written: {_short(why, _LONGEST_LINE)}"]
    lines.append(f"Rule {delivery.rule} of project {delivery.project}.")
    key = f"{cluster}-{delivery.id}"
    facts = {
        "key": key,
        "kind": delivery.kind,
        "severity": severity,
        "project": delivery.project,
        "rule": delivery.rule,
        "receiver": delivery.receiver,
        "subject": subject,
        "url": None,
        "total": total,
        "alerts": [_fact(one) for one in alerts],
        "reduced": _short(why, _LONGEST_LINE),
    }
    text = "\n".join(lines) + "\n"
    return AlertMessage(
        key=key,
        kind=delivery.kind,
        severity=severity,
        project=delivery.project,
        subject=subject,
        text=text,
        html=f"<pre>{escape(text)}</pre>",
        facts=facts,
    )


def _line(alert: Alert) -> str:
    parts = [str(alert.trigger), alert.workflow, alert.task or ""]
    if alert.instance_id is not None:
        parts.append(f"run {alert.instance_id}")
    said = " ".join(filter(None, parts))
    return _short(f"{said}: {alert.reason}" if alert.reason else said, _LONGEST_LINE)


def _fact(alert: Alert) -> dict[str, object]:
    """The fields of the usual message; those that may have made it fail are null."""
    return {
        "id": alert.id,
        "trigger": alert.trigger,
        "severity": alert.severity,
        "state": alert.state,
        "at": alert.at.isoformat(),
        "resolved_at": alert.resolved_at.isoformat() if alert.resolved_at else None,
        "workflow": alert.workflow,
        "instance_id": alert.instance_id,
        "logical_time": alert.logical_time.isoformat() if alert.logical_time else None,
        "run_state": None,
        "task": alert.task,
        "task_instance_id": alert.task_instance_id,
        "reason": _short(alert.reason, _LONGEST_LINE) if alert.reason else None,
        "outputs": None,
        "url": None,
    }


def _short(text: str, most: int) -> str:
    return shortened(encodable(" ".join(text[: 10 * most].split())), most)
