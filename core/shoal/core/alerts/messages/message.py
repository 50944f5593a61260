"""A message about alerts, ready for any channel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shoal.core.alerts.records import Alert, AlertDelivery, DeliveryKind
from shoal.core.alerts.rules import Severity
from shoal.core.runs.records import Instance, TaskInstance


@dataclass(frozen=True)
class Attachment:
    """A file that a message may carry; channels that take none leave it out."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class AlertMessage:
    """What is sent. ``facts`` says the same for programs: JSON values; docs/alerts.md has them.

    ``key`` is the same in every try, and of no other message.
    """

    key: str
    kind: DeliveryKind
    severity: Severity
    project: str
    subject: str  # one line
    text: str
    html: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    attachments: Sequence[Attachment] = ()


@dataclass(frozen=True)
class RunFacts:
    """A run, with those of its tasks that matter most: what failed first."""

    run: Instance
    tasks: Sequence[TaskInstance]
    more_tasks: int


@dataclass(frozen=True)
class MessageFacts:
    """``alerts``: the newest ones; ``total``: how many there are. The others are by their ids.

    ``results``: the attempts whose outputs are sent.
    """

    delivery: AlertDelivery
    alerts: Sequence[Alert]
    total: int
    runs: Mapping[int, RunFacts]
    now: datetime
    results: Mapping[int, TaskInstance] = field(default_factory=dict)
