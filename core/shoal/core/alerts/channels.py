"""The interface of channels: plugins of the entry point group ``shoal.alert_channels``.

A module that holds a channel is imported by the API, too, which checks options and shows forms:
libraries that only sending needs are imported in ``send``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel

from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.errors import ShoalError

SEND_S = 30.0  # seconds that sending may take, the answer included


class ChannelFailed(ShoalError):
    """A message was not taken. ``may_pass``: another try may succeed."""

    def __init__(self, text: str, *, may_pass: bool = True) -> None:
        self.may_pass = may_pass
        super().__init__(text)


class UnknownChannel(ShoalError):
    """There is no channel of this kind here."""

    def __init__(self, kind: str, known: Sequence[str]) -> None:
        super().__init__(f"there is no channel of kind {kind!r}; there are {', '.join(known)}")


@dataclass(frozen=True)
class Way:
    """What a channel needs besides its options.

    ``secrets``: values of the secrets that options name, by the options' names. ``settings``: those
    of the alert server.
    """

    to: Sequence[str]
    secrets: Mapping[str, str] = field(repr=False)
    settings: Mapping[str, str]


O = TypeVar("O", bound=BaseModel)  # noqa: E741 - options


class Channel(ABC, Generic[O]):
    """A kind of channel. It has no state: each message finds it new."""

    Options: ClassVar[type[BaseModel]]
    #: Whether each message needs addresses.
    needs_addresses: ClassVar[bool] = False

    @abstractmethod
    async def send(self, message: AlertMessage, options: O, way: Way) -> str:
        """Send a message; return what the other side said. Raises ChannelFailed.

        Cancelled after ``SEND_S``. A message whose ``key`` was sent before may come again.
        """
