"""A message about alerts, ready for any channel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.core.alerts.records import DeliveryKind
from shoal.core.alerts.rules import Severity


@dataclass(frozen=True)
class Attachment:
    """A file that a message may carry; channels that take none leave it out."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Message:
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
