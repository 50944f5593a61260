"""Alerts and messages as they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.rules import Severity


class AlertState(StrEnum):
    """How an alert stands."""

    OPEN = "OPEN"
    RESOLVED = "RESOLVED"  # its cause is gone; final
    TOLD = "TOLD"  # good news, or about something that is over: nothing can resolve it; final


class DeliveryState(StrEnum):
    """How a message to one place stands."""

    PENDING = "PENDING"  # collected, waits for its time or for another try
    SENDING = "SENDING"  # an alert server is at it
    SENT = "SENT"  # the channel has taken it; final
    FAILED = "FAILED"  # given up; final
    WITHDRAWN = "WITHDRAWN"  # what it was about had recovered before it left; final
    SILENCED = "SILENCED"  # a silence covered all of it; final


class DeliveryKind(StrEnum):
    """Why a message is sent."""

    FIRING = "FIRING"  # something has happened
    REMINDER = "REMINDER"  # it goes on
    ESCALATION = "ESCALATION"  # it goes on and is not acknowledged
    RESOLVED = "RESOLVED"  # its cause is gone
    TEST = "TEST"  # a user tries a channel


@dataclass(frozen=True)
class NewAlert:
    """An alert about to be stored."""

    project: str
    rule: str
    trigger: Trigger
    severity: Severity
    subject: str
    workflow: str
    event_id: int
    at: datetime
    state: AlertState
    instance_id: int | None = None
    logical_time: datetime | None = None
    task: str | None = None
    task_instance_id: int | None = None
    reason: str | None = None
    next_at: datetime | None = None  # of a reminder or an escalation


@dataclass(frozen=True)
class Alert(NewAlert):
    """One that is stored."""

    id: int = 0
    resolved_at: datetime | None = None
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    steps: int = 0  # escalations so far
    told_at: datetime | None = None  # when a message about it has left for the first time
    silenced_by: int | None = None


@dataclass(frozen=True)
class NewDelivery:
    """A message to one place, about to be stored."""

    project: str
    rule: str
    receiver: str
    channel: str
    recipients: tuple[str, ...]
    kind: DeliveryKind
    due_at: datetime
    alerts: tuple[int, ...] = ()


@dataclass(frozen=True)
class AlertDelivery(NewDelivery):
    """One that is stored; ``alerts`` are not read with it."""

    id: int = 0
    state: DeliveryState = DeliveryState.PENDING
    tries: int = 0
    created_at: datetime | None = None
    sent_at: datetime | None = None
    answer: str | None = None


@dataclass(frozen=True)
class Try:
    """An attempt to send a message. ``took_s``: until the channel had answered."""

    number: int
    at: datetime
    took_s: float
    is_sent: bool
    answer: str


class DefinitionKind(StrEnum):
    """What projects define for alerts."""

    RULE = "rule"
    RECEIVER = "receiver"
    CHANNEL = "channel"


@dataclass(frozen=True)
class StoredAlertDefinition:
    """A rule, a receiver or a channel as it is stored; ``spec`` is checked by who uses it."""

    id: int
    project: str
    kind: DefinitionKind
    name: str
    spec: Mapping[str, object]
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class AlertSilence:
    """No notification is sent about what it covers, between two moments."""

    id: int
    project: str
    workflow: str  # a pattern; empty: all
    task: str  # the same
    rule: str  # the same
    since: datetime
    until: datetime
    reason: str
    by: str


@dataclass(frozen=True)
class AlertCondition:
    """Something that a rule watches, and that is not as it should be; ``reason`` is not stored.

    ``workflow``: empty for one of the cluster.
    """

    project: str
    rule: str
    subject: str
    trigger: Trigger
    workflow: str
    reason: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What no other condition has."""
        return self.project, self.rule, self.subject
