"""Alerts that the pictures show: what a project defines for them, and what was told."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.rest import Rest
from tests.support.waiting import DEADLINE_S

_OF = "/projects/flights"


def define(rest: Rest, sink: str) -> None:
    """Define channels, receivers, rules and a silence, before anything runs."""
    mail = {"host": "smtp.example.org", "sender": "shoal@example.org", "password_secret": "smtp"}
    for name, body in {
        "mail": {"kind": "email", "options": {**mail, "user": "shoal"}},
        "chat": {"kind": "webhook", "options": {"url": f"{sink}/hooks/flights"}},
        "pager": {"kind": "webhook", "options": {"url": f"{sink}/refused"}, "per_minute": 10},
        "text-message": {"kind": "script", "options": {"name": "sms"}, "enabled": False},
    }.items():
        _put(rest, f"/alert-channels/{name}", body)
    on_call = [
        {"name": name, "targets": [{"channel": "chat"}]} for name in ("Ada", "Rosa", "Li Ming")
    ]
    mail_to = [{"channel": "mail", "to": ["head@example.org"]}, {"channel": "pager"}]
    for name, body in {
        "on-call": {
            "members": on_call,
            "rotation": {"start": "2026-11-02", "timezone": "Europe/Berlin"},
        },
        "team": {"members": [{"name": "Flights", "targets": [{"channel": "chat"}]}]},
        "head-of-data": {"members": [{"name": "Grace", "targets": mail_to}]},
        "pager": {"members": [{"targets": [{"channel": "pager"}]}]},
    }.items():
        _put(rest, f"/alert-receivers/{name}", body)
    night = [{"since": "22:00", "until": "07:00", "timezone": "Europe/Berlin"}]
    for name, body in {
        "night": {
            "triggers": ["run.failed", "run.late", "task.lost"],
            "workflows": ["nightly", "load-*"],
            "receivers": ["on-call", "pager"],
            "severity": "critical",
            "group_for": "1s",
            "repeat_every": "1h",
            "escalation": [{"after": "15m", "receivers": ["head-of-data"]}],
        },
        "details": {"triggers": ["task.failed"], "receivers": ["team"], "group_for": "1s"},
        "hourly": {
            "triggers": ["run.succeeded"],
            "workflows": ["hourly"],
            "receivers": ["team"],
            "severity": "info",
            "group_for": "1s",
            "quiet": night,
        },
        "on-time": {
            "triggers": ["workflow.not-finished", "workflow.no-success"],
            "workflows": ["nightly"],
            "deadline": {"percentile": 95, "margin": "15m", "timezone": "Europe/Berlin"},
            "no_success_for": "26h",
            "receivers": ["team"],
        },
        "old": {"triggers": ["backfill.failed"], "receivers": ["team"], "enabled": False},
    }.items():
        _put(rest, f"/alert-rules/{name}", body)
    until = (datetime.now(UTC) + timedelta(hours=4)).isoformat()
    silence = {"workflow": "weather", "until": until, "reason": "the provider moves its servers"}
    answer = rest.http.post(f"{_OF}/alert-silences", json=silence)
    assert answer.status_code == 201, answer.text


def wait_for_messages(rest: Rest, run: int) -> int:
    """Wait until people were told of a run that failed. Returns the id of its alert."""
    found = rest.until(
        lambda: rest.get(f"{_OF}/alerts", instance_id=run)["items"],
        lambda items: any(one["rule"] == "night" and one["told_at"] for one in items),
        timeout_s=2 * DEADLINE_S,
    )
    ids = {one["rule"]: one["id"] for one in found}
    path = f"{_OF}/alerts/{ids['night']}"
    rest.until(
        lambda: [one["state"] for one in rest.get(path)["deliveries"]],
        lambda states: not {"PENDING", "SENDING"} & set(states),
        timeout_s=2 * DEADLINE_S,
    )
    answer = rest.http.post(f"{_OF}/alerts/{ids['details']}/acknowledgement")
    assert answer.status_code == 200, answer.text
    return int(ids["night"])


def _put(rest: Rest, path: str, body: Any) -> None:
    answer = rest.http.put(f"{_OF}{path}", json=body)
    assert answer.status_code in (200, 201), f"{path}: {answer.text}"
