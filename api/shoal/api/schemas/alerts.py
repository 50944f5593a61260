"""Alerts: rules, receivers, channels and silences; what has happened, and who was notified."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictStr, model_validator

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.receivers import Address, ChannelSpec, ReceiverSpec
from shoal.core.alerts.records import AlertState, DeliveryKind, DeliveryState
from shoal.core.alerts.rules import RuleSpec, Severity
from shoal.core.timing.instant import Instant


class AlertRuleIn(RuleSpec):
    """A rule."""


class AlertReceiverIn(ReceiverSpec):
    """A receiver."""


class AlertChannelIn(ChannelSpec):
    """A channel."""


class StoredDefinition(BaseModel):
    """What rules, receivers and channels have in common."""

    name: str
    version: int = Field(description="Grows with each change.")
    created_at: datetime
    updated_at: datetime
    spec: dict[str, Any] = Field(description="As it was set; durations in seconds.")


class AlertRuleOut(StoredDefinition):
    """A rule: what raises an alert, and who is notified."""


class AlertReceiverOut(StoredDefinition):
    """A receiver: people and the channels that reach them."""


class AlertChannelOut(StoredDefinition):
    """A channel: a way by which messages leave."""


class AlertChannelKindOut(Answer):
    """A kind of channel that is installed."""

    kind: str
    needs_addresses: bool = Field(description="Whether receivers have to name addresses for it.")
    options_schema: dict[str, Any] = Field(description="JSON Schema of the options.")


class AlertOut(Answer):
    """Something that a rule is about has happened."""

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
    next_at: datetime | None = Field(description="Time of the next notification; null: none.")


class AlertDeliveryOut(Answer):
    """A message to one place."""

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
    """An alert, and who was notified of it."""

    deliveries: list[AlertDeliveryOut] = Field(description="The first message first.")


class AlertAttemptOut(Answer):
    """An attempt to send a message."""

    number: int
    at: datetime
    took_s: float = Field(description="Seconds until the channel had answered.")
    is_sent: bool
    answer: str


class AlertDeliveryDetail(AlertDeliveryOut):
    """A message with every attempt to send it."""

    attempts: list[AlertAttemptOut] = Field(description="The first one first.")
    alerts: list[int] = Field(description="Ids of the alerts it contains, at most 1,000.")


class AlertVerdictOut(Answer):
    """What a rule made of something that happened."""

    rule: str
    reason: str | None = Field(description="Why it made no alert of it; null: it made one.")
    alert: AlertDetail | None


class AlertExplanationOut(Answer):
    """Something that happened, and what the rules of the project made of it."""

    event_id: int
    at: datetime
    trigger: Trigger
    workflow: str
    task: str | None
    instance_id: int | None
    reason: str | None
    rules: list[AlertVerdictOut]


class AlertPreviewIn(RequestBody):
    """A rule, and the notifications it would send."""

    rule: RuleSpec
    alert_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = Field(
        default=None, description="An alert of the project; null: an example."
    )


class AlertPreviewOut(Answer):
    """What a message would say."""

    subject: str
    text: str
    html: str


class AlertTestIn(RequestBody):
    """The addresses of a message that tries a channel."""

    to: Annotated[list[Address], Field(max_length=20)] = Field(
        default_factory=list, description="Addresses, for a channel that needs some."
    )


class AlertSilenceIn(RequestBody):
    """Alerts without notifications, and until when."""

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


class AlertSilenceOut(Answer):
    """A silence."""

    id: int
    workflow: str
    task: str
    rule: str
    since: datetime
    until: datetime
    reason: str
    by: str
