"""Alerts: rules, receivers, channels and silences; what has happened, and who was told."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictStr, model_validator

from shoal.api.schemas.common import TIME, Instant, Strict, body_example, example
from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.receivers import Address, ChannelSpec, ReceiverSpec
from shoal.core.alerts.records import AlertState, DeliveryKind, DeliveryState
from shoal.core.alerts.rules import RuleSpec, Severity

_RULE = {
    "triggers": ["run.failed", "run.late"],
    "workflows": ["load-*"],
    "receivers": ["on-call"],
    "severity": "critical",
    "escalation": [{"after": "15m", "receivers": ["head-of-data"]}],
}
_RECEIVER = {
    "members": [{"name": "Ada", "targets": [{"channel": "mail", "to": ["ada@example.org"]}]}]
}
_CHANNEL = {
    "kind": "email",
    "options": {
        "host": "smtp.example.org",
        "sender": "shoal@example.org",
        "user": "shoal",
        "password_secret": "smtp",
    },
}
_STORED = {"name": "night", "version": 3, "created_at": TIME, "updated_at": TIME}
_ALERT = {
    "id": 12,
    "project": "flights",
    "rule": "night",
    "trigger": "run.failed",
    "severity": "critical",
    "state": "OPEN",
    "workflow": "daily",
    "instance_id": 17,
    "logical_time": TIME,
    "task": None,
    "task_instance_id": None,
    "at": TIME,
    "reason": "1 task failed: load",
    "resolved_at": None,
    "acknowledged_at": None,
    "acknowledged_by": None,
    "told_at": TIME,
    "silenced_by": None,
    "next_at": TIME,
}
_DELIVERY = {
    "id": 31,
    "rule": "night",
    "receiver": "on-call",
    "channel": "mail",
    "recipients": ["ada@example.org"],
    "kind": "FIRING",
    "state": "SENT",
    "due_at": TIME,
    "tries": 1,
    "created_at": TIME,
    "sent_at": TIME,
    "answer": "250 queued",
}
_ATTEMPT = {"number": 1, "at": TIME, "took_s": 0.2, "is_sent": True, "answer": "250 queued"}
_SILENCE = {
    "id": 4,
    "workflow": "load-*",
    "task": "",
    "rule": "",
    "since": TIME,
    "until": "2026-11-21T18:00:00Z",
    "reason": "the warehouse moves",
    "by": "ada",
}


class AlertRuleIn(RuleSpec):
    """A rule."""

    model_config = body_example(_RULE)


class AlertReceiverIn(ReceiverSpec):
    """A receiver."""

    model_config = body_example(_RECEIVER)


class AlertChannelIn(ChannelSpec):
    """A channel."""

    model_config = body_example(_CHANNEL)


class StoredDefinition(BaseModel):
    """What rules, receivers and channels have in common."""

    name: str
    version: int = Field(description="Grows with each change.")
    created_at: datetime
    updated_at: datetime
    spec: dict[str, Any] = Field(description="As it was set; durations in seconds.")


class AlertRuleOut(StoredDefinition):
    """A rule: what is an alert, and who is told of it."""

    model_config = example({**_STORED, "spec": _RULE})


class AlertReceiverOut(StoredDefinition):
    """A receiver: people who are told, by which channels."""

    model_config = example({**_STORED, "spec": _RECEIVER})


class AlertChannelOut(StoredDefinition):
    """A channel: a way by which messages leave."""

    model_config = example({**_STORED, "spec": _CHANNEL})


class AlertChannelKindOut(BaseModel):
    """A kind of channel that is installed."""

    model_config = example({"kind": "webhook", "needs_addresses": False, "options_schema": {}})

    kind: str
    needs_addresses: bool = Field(description="Whether receivers have to name addresses for it.")
    options_schema: dict[str, Any] = Field(description="JSON Schema of the options.")


class AlertOut(BaseModel):
    """Something that a rule is about has happened."""

    model_config = example(_ALERT)

    id: int
    project: str
    rule: str
    trigger: Trigger
    severity: Severity
    state: AlertState = Field(
        description="`OPEN` until its cause is gone, then `RESOLVED`; `TOLD`: there is nothing "
        "to recover from."
    )
    workflow: str
    instance_id: int | None
    logical_time: datetime | None
    task: str | None
    task_instance_id: int | None
    at: datetime
    reason: str | None
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    told_at: datetime | None = Field(description="When the first message about it has left.")
    silenced_by: int | None = Field(description="The silence that covers it.")
    next_at: datetime | None = Field(description="When somebody is told again; null: never.")


class AlertDeliveryOut(BaseModel):
    """A message to one place."""

    model_config = example(_DELIVERY)

    id: int
    rule: str = Field(description="Empty: of a test.")
    receiver: str
    channel: str
    recipients: list[str]
    kind: DeliveryKind
    state: DeliveryState
    due_at: datetime = Field(description="When it is to be sent, or tried again.")
    tries: int
    created_at: datetime
    sent_at: datetime | None
    answer: str | None = Field(description="What the other side has said last, or why it failed.")


class AlertDetail(AlertOut):
    """An alert, and who was told of it."""

    model_config = example({**_ALERT, "deliveries": [_DELIVERY]})

    deliveries: list[AlertDeliveryOut] = Field(description="The first message first.")


class AlertAttemptOut(BaseModel):
    """An attempt to send a message."""

    model_config = example(_ATTEMPT)

    number: int
    at: datetime
    took_s: float = Field(description="Seconds until the channel had answered.")
    is_sent: bool
    answer: str


class AlertDeliveryDetail(AlertDeliveryOut):
    """A message with every attempt to send it."""

    model_config = example({**_DELIVERY, "attempts": [_ATTEMPT], "alerts": [12]})

    attempts: list[AlertAttemptOut] = Field(description="The first one first.")
    alerts: list[int] = Field(description="What it tells of, by id; 1,000 at most.")


class AlertVerdictOut(BaseModel):
    """What a rule made of something that happened."""

    model_config = example({"rule": "night", "reason": "the rule is disabled", "alert": None})

    rule: str
    reason: str | None = Field(description="Why it made no alert of it; null: it made one.")
    alert: AlertDetail | None


class AlertExplanationOut(BaseModel):
    """Something that happened, and what the rules of the project made of it."""

    model_config = example(
        {
            "event_id": 90,
            "at": TIME,
            "trigger": "run.failed",
            "workflow": "daily",
            "task": None,
            "instance_id": 17,
            "reason": "1 task failed: load",
            "rules": [{"rule": "night", "reason": "the rule is disabled", "alert": None}],
        }
    )

    event_id: int
    at: datetime
    trigger: Trigger
    workflow: str
    task: str | None
    instance_id: int | None
    reason: str | None
    rules: list[AlertVerdictOut]


class AlertPreviewIn(Strict):
    """A rule, and what it would tell of."""

    model_config = body_example({"rule": _RULE, "alert_id": None})

    rule: RuleSpec
    alert_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = Field(
        default=None, description="An alert of the project; null: an example."
    )


class AlertPreviewOut(BaseModel):
    """What a message would say."""

    model_config = example(
        {"subject": "[warning] flights: daily failed", "text": "daily failed\n", "html": "<div>…"}
    )

    subject: str
    text: str
    html: str


class AlertTestIn(Strict):
    """The addresses of a message that tries a channel."""

    model_config = body_example({"to": ["ada@example.org"]})

    to: Annotated[list[Address], Field(max_length=20)] = Field(
        default_factory=list, description="Addresses, for a channel that needs some."
    )


class AlertSilenceIn(Strict):
    """What nobody is told of, and until when."""

    model_config = body_example({"workflow": "load-*", "until": TIME, "reason": "maintenance"})

    workflow: Annotated[StrictStr, Field(max_length=200)] = Field(
        default="", description="A name or pattern; empty: all."
    )
    task: Annotated[StrictStr, Field(max_length=200)] = ""
    rule: Annotated[StrictStr, Field(max_length=200)] = ""
    since: Instant | None = Field(default=None, description="Null: now.")
    until: Instant
    reason: Annotated[StrictStr, Field(max_length=2000)] = ""

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> "AlertSilenceIn":
        if self.since is not None and self.until <= self.since:
            raise ValueError("until must be later than since")
        return self


class AlertSilenceOut(BaseModel):
    """A silence."""

    model_config = example(_SILENCE)

    id: int
    workflow: str
    task: str
    rule: str
    since: datetime
    until: datetime
    reason: str
    by: str
