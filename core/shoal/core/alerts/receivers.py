"""Receivers and channels: who is notified, and by which way."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictStr, model_validator

from shoal.core.alerts.times import Rotation
from shoal.core.definition.fields import Name, Strict

# An alert is a message for each target, so these bound how many a rule makes of it.
MOST_MEMBERS = 50
MOST_TARGETS = 5
MOST_ADDRESSES = 100
LONGEST_ADDRESS = 500  # characters

# Control characters would begin another line of what is said to a mail server.
Address = Annotated[
    StrictStr,
    Field(min_length=1, max_length=LONGEST_ADDRESS, pattern=r"^[^\x00-\x1f\x7f]+$"),
]


class Target(Strict):
    """A channel, and the addresses in it: those of e-mail; other channels may need none."""

    channel: Name
    to: tuple[Address, ...] = Field(default=(), max_length=MOST_ADDRESSES)


class Member(Strict):
    """A person who can be notified, in one way or several."""

    name: StrictStr = Field(default="", max_length=200)
    targets: tuple[Target, ...] = Field(min_length=1, max_length=MOST_TARGETS)


class ReceiverSpec(Strict):
    """Who is notified: all members, or with a rotation the one who is on duty."""

    members: tuple[Member, ...] = Field(min_length=1, max_length=MOST_MEMBERS)
    rotation: Rotation | None = None
    description: StrictStr = Field(default="", max_length=2000)

    def targets(self, at: datetime) -> tuple[Target, ...]:
        """Return where a message of this moment goes, each place once."""
        members = self.members
        if self.rotation is not None:
            members = (members[self.rotation.on_duty(len(members), at)],)
        return tuple(dict.fromkeys(one for member in members for one in member.targets))

    @property
    def channels(self) -> frozenset[str]:
        """All channels that it names."""
        return frozenset(one.channel for member in self.members for one in member.targets)


class ChannelSpec(Strict):
    """A way by which messages leave. ``kind`` is that of a plugin, which checks the options.

    Options hold no secrets: those whose names end in ``_secret`` name a secret of the project.
    """

    kind: StrictStr = Field(max_length=50, description="email, webhook, script …")
    options: dict[str, Any] = Field(default_factory=dict, max_length=50)
    enabled: StrictBool = True
    per_minute: int = Field(
        default=60, ge=1, le=6000, description="How many messages may leave in a minute."
    )
    description: StrictStr = Field(default="", max_length=2000)

    @model_validator(mode="after")
    def _names_of_secrets_are_texts(self) -> "ChannelSpec":
        for name, value in self.options.items():
            if name.endswith("_secret") and not isinstance(value, str):
                raise ValueError(f"options.{name}: must be the name of a secret of the project")
        return self
