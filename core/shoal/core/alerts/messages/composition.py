"""Facts as a message: a subject, a text, HTML, and JSON for programs. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import Any
from zoneinfo import ZoneInfo

from shoal.core.alerts.messages.message import AlertMessage, Attachment, MessageFacts, RunFacts
from shoal.core.alerts.messages.phrases import phrase
from shoal.core.alerts.messages.results import (
    ResultTable,
    attachment,
    html_of,
    table_of,
    text_lines,
)
from shoal.core.alerts.records import Alert, DeliveryKind
from shoal.core.alerts.rules import Language, Severity
from shoal.core.runs.records import TaskInstance
from shoal.core.timing.durations import format_duration
from shoal.core.timing.wallclock import shown_in

_ORDER = list(Severity)
_COLOURS = {Severity.INFO: "#1677ff", Severity.WARNING: "#d48806", Severity.CRITICAL: "#cf1322"}
_GOOD = "#389e0d"
_LONGEST_SUBJECT = 200  # characters
_LONGEST_REASON = 500
_LONGEST_OUTPUT = 2_000


def write(facts: MessageFacts, language: Language, public_url: str, cluster: str) -> AlertMessage:
    """Return the message. ``cluster`` is a name that no other cluster has."""
    delivery, alerts = facts.delivery, facts.alerts
    severity = max((one.severity for one in alerts), key=_ORDER.index, default=Severity.INFO)
    what = _what(facts, language)
    subject = f"[{severity}] {delivery.project}: {what}"[:_LONGEST_SUBJECT]
    url = _url(public_url, alerts[-1]) if alerts else (public_url or None)
    key = f"{cluster}-{delivery.id}"
    return AlertMessage(
        key=key,
        kind=delivery.kind,
        severity=severity,
        project=delivery.project,
        subject=subject,
        text="\n".join(_text(facts, language, public_url)) + "\n",
        html=_html(facts, language, public_url, subject, severity),
        facts={
            "key": key,
            "kind": delivery.kind,
            "severity": severity,
            "project": delivery.project,
            "rule": delivery.rule,
            "receiver": delivery.receiver,
            "subject": subject,
            "url": url,
            "total": facts.total,
            "alerts": [_fact(one, facts, public_url) for one in alerts],
        },
        attachments=tuple(_attachments(facts)),
    )


def reworded(message: AlertMessage, subject: str, text: str) -> AlertMessage:
    """Return a message with other words; empty: as they are."""
    subject = " ".join(subject.split())[:_LONGEST_SUBJECT] or message.subject
    html = message.html
    if text:
        html = (
            f'<div style="font-family:sans-serif;font-size:14px"><h2 style="font-size:17px">'
            f'{escape(subject)}</h2><div style="white-space:pre-wrap">{escape(text)}</div></div>'
        )
    facts = {**message.facts, "subject": subject}
    return replace(message, subject=subject, text=text or message.text, html=html, facts=facts)


def _what(facts: MessageFacts, language: Language) -> str:
    delivery = facts.delivery
    if delivery.kind is DeliveryKind.TEST:
        return phrase(language, delivery.kind, channel=delivery.channel)
    what = _happened(facts.alerts[-1], language) if facts.alerts else delivery.rule
    if facts.total > 1:
        what = phrase(language, "and_more", what=what, count=f"{facts.total - 1:,}")
    return phrase(language, delivery.kind, what=what)


def _happened(alert: Alert, language: Language) -> str:
    return phrase(language, alert.trigger, workflow=alert.workflow, task=alert.task)


def _lines(alert: Alert, facts: MessageFacts, language: Language) -> Iterator[str]:
    """Yield what is said of an alert besides its head."""
    found = facts.runs.get(alert.instance_id or 0)
    if found is not None:
        yield _run(found, language)
    else:
        yield f"{phrase(language, 'at')}: {_time(alert.at, 'UTC')}"
    if alert.reason:
        yield alert.reason[:_LONGEST_REASON]
    if alert.resolved_at is not None:
        zone = found.run.timezone if found is not None else "UTC"
        yield phrase(language, "resolved", time=_time(alert.resolved_at, zone))


def _run(found: RunFacts, language: Language) -> str:
    run = found.run
    time = _time(run.logical_time, run.timezone)
    return phrase(language, "run", id=run.id, time=time, version=run.version, state=run.state)


def _text(facts: MessageFacts, language: Language, public_url: str) -> Iterator[str]:
    if facts.delivery.kind is DeliveryKind.TEST:
        yield phrase(language, "test")
        return
    shown: set[int] = set()
    for alert in reversed(facts.alerts):
        yield _happened(alert, language)
        for line in _lines(alert, facts, language):
            yield f"  {line}"
        if url := _url(public_url, alert):
            yield f"  {url}"
        if (table := _result(alert, facts)) is not None:
            yield from (f"    {line}" for line in text_lines(table))
        found = facts.runs.get(alert.instance_id or 0)
        if found is not None and found.tasks and found.run.id not in shown:
            shown.add(found.run.id)
            width = max(len(one.task) for one in found.tasks)
            for task in found.tasks:
                took, reason = _took(task, facts.now), _why(task)
                yield f"    {task.task:<{width}}  {task.state:<9}  {took:>8}  {reason}".rstrip()
        yield ""
    if (more := facts.total - len(facts.alerts)) > 0:
        yield phrase(language, "more", count=f"{more:,}")
    yield _footer(facts, language)


def _html(
    facts: MessageFacts, language: Language, public_url: str, subject: str, severity: Severity
) -> str:
    colour = _GOOD if facts.delivery.kind is DeliveryKind.RESOLVED else _COLOURS[severity]
    parts = [
        '<div style="font-family:sans-serif;font-size:14px;color:#222;max-width:760px">',
        f'<h2 style="font-size:17px;border-left:5px solid {colour};padding-left:10px">'
        f"{escape(subject)}</h2>",
    ]
    if facts.delivery.kind is DeliveryKind.TEST:
        parts.append(f"<p>{escape(phrase(language, 'test'))}</p>")
    shown: set[int] = set()
    for alert in reversed(facts.alerts):
        head = escape(_happened(alert, language))
        if url := _url(public_url, alert):
            head = f'<a href="{escape(url)}">{head}</a>'
        lines = "<br>".join(escape(line) for line in _lines(alert, facts, language))
        parts.append(f'<p><b>{head}</b><br><span style="color:#555">{lines}</span></p>')
        if (table := _result(alert, facts)) is not None:
            parts.append(html_of(table))
        found = facts.runs.get(alert.instance_id or 0)
        if found is not None and found.tasks and found.run.id not in shown:
            shown.add(found.run.id)
            parts.append(_table(found, facts.now, language))
    if (more := facts.total - len(facts.alerts)) > 0:
        parts.append(f"<p>{escape(phrase(language, 'more', count=f'{more:,}'))}</p>")
    footer = escape(_footer(facts, language))
    parts.append(f'<p style="color:#888;font-size:12px">{footer}</p></div>')
    return "\n".join(parts)


def _table(found: RunFacts, now: datetime, language: Language) -> str:
    heads = "".join(
        f'<th align="left" style="padding:2px 14px 2px 0;color:#888">'
        f"{escape(phrase(language, name))}</th>"
        for name in ("task", "state", "took", "reason")
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="padding:2px 14px 2px 0;vertical-align:top">{escape(text)}</td>'
            for text in (
                task.task,
                str(task.state),
                _took(task, now),
                _why(task)[:_LONGEST_REASON],
            )
        )
        + "</tr>"
        for task in found.tasks
    )
    return f'<table style="border-collapse:collapse;font-size:13px"><tr>{heads}</tr>{rows}</table>'


def _why(task: TaskInstance) -> str:
    """Return the reason, and what the log says of the failure unless the reason says it."""
    reason, line = task.reason or "", task.error_line
    if not line or line in reason:
        return reason
    return f"{reason}: {line}" if reason else line


def _footer(facts: MessageFacts, language: Language) -> str:
    one = facts.delivery
    return phrase(
        language, "footer", rule=one.rule, project=one.project, receiver=one.receiver or one.channel
    )


def _fact(alert: Alert, facts: MessageFacts, public_url: str) -> dict[str, Any]:
    found = facts.runs.get(alert.instance_id or 0)
    result = facts.results.get(alert.task_instance_id or 0)
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
        "run_state": found.run.state if found else None,
        "task": alert.task,
        "task_instance_id": alert.task_instance_id,
        "reason": alert.reason,
        "outputs": _outputs(result) if result is not None else None,
        "url": _url(public_url, alert),
    }


def _result(alert: Alert, facts: MessageFacts) -> ResultTable | None:
    found = facts.results.get(alert.task_instance_id or 0)
    return table_of(found.outputs) if found is not None else None


def _attachments(facts: MessageFacts) -> Iterator[Attachment]:
    if facts.delivery.kind is not DeliveryKind.FIRING:
        return
    for alert in facts.alerts:
        table = _result(alert, facts)
        if table is not None:
            yield attachment(f"{alert.task}-{alert.task_instance_id}", table)


def _outputs(result: TaskInstance) -> dict[str, str]:
    return {name: value[:_LONGEST_OUTPUT] for name, value in result.outputs.items()}


def _url(public_url: str, alert: Alert) -> str | None:
    if not public_url:
        return None
    if alert.instance_id is not None:
        page = f"runs/{alert.instance_id}"
    elif alert.workflow:
        page = f"projects/{alert.project}/workflows/{alert.workflow}"
    else:
        page = "cluster"
    return f"{public_url.rstrip('/')}/{page}"


def _time(moment: datetime, zone: str) -> str:
    shown = shown_in(moment, ZoneInfo(zone))
    return f"{shown:%Y-%m-%d %H:%M} {zone if shown.tzinfo is not UTC else 'UTC'}"


def _took(task: TaskInstance, now: datetime) -> str:
    if task.started_at is None:
        return ""
    return format_duration(max(0.0, ((task.finished_at or now) - task.started_at).total_seconds()))
