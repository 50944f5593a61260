"""Chats and pagers, by apprise: Slack, Teams, Discord, Telegram, DingTalk, PagerDuty and others."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from pydantic import Field, StrictStr

from shoal.core.alerts.channels import Channel, ChannelFailed, Way
from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.definition.fields import NAME_PATTERN, Strict
from shoal.runtime.side.own_thread import call_in_own_thread

# Services of their own. What apprise could do beyond (run programs, write files, speak to any
# server) is not for what a project's writers say; for that there are webhooks and scripts.
SERVICES = frozenset(
    {
        "dingtalk", "discord", "feishu", "gchat", "gotify", "gotifys", "lark", "line", "matrix",
        "matrixs", "mmost", "mmosts", "msteams", "ntfy", "ntfys", "opsgenie", "pagerduty",
        "pagertree", "pover", "pushbullet", "rocket", "rockets", "slack", "splunk", "tgram",
        "twilio", "victorops", "wecombot", "whatsapp", "workflows", "wxteams", "zulip",
    }
)  # fmt: skip
_HOSTS_OF_THEIR_OWN = frozenset(
    {"gotify", "gotifys", "matrix", "matrixs", "mmost", "mmosts", "ntfy", "ntfys", "rocket",
     "rockets"}
)  # fmt: skip


OF_ADDRESS, OF_PROJECT, OF_PROCESS = 4, 16, 64  # messages that are being sent at a time
WAIT_S = 10.0  # for earlier messages to end; less than ``SEND_S``, so that the reason is reported


class ChatRooms:
    """Limits the threads that send to chats: of an address, of a project and of the process.

    The alert server gives up a message after ``SEND_S``, but its thread runs until the service ends
    the answer, which a broken one may never do. So a thread keeps its place until its own end, and
    a broken service or project cannot use up the threads of the process. One event loop.
    """

    def __init__(self) -> None:
        self._rooms: dict[tuple[str, str], asyncio.Semaphore] = {}
        self._users: Counter[tuple[str, str]] = Counter()  # that are in a room or wait for it

    async def enter(self, project: str, address: str) -> Callable[[], None]:
        """Wait for a place; return the function that leaves it.

        Raises ChannelFailed if earlier messages hold all places for ``WAIT_S``.
        """
        reason = ""
        with ExitStack() as stack:
            try:
                async with asyncio.timeout(WAIT_S):
                    # In this order: those that wait for a broken service hold no place of others.
                    for most, of, key in (
                        (OF_ADDRESS, "this chat", ("address", address)),
                        (OF_PROJECT, f"chats of project {project}", ("project", project)),
                        (OF_PROCESS, "chats by this alert server", ("process", "")),
                    ):
                        reason = f"{most} earlier messages to {of} are still being sent"
                        room = self._rooms.setdefault(key, asyncio.Semaphore(most))
                        self._users[key] += 1
                        stack.callback(self._forget_unused, key)
                        await room.acquire()
                        stack.callback(room.release)
            except TimeoutError:
                raise ChannelFailed(f"{reason}; check that the service ends its answers") from None
            return stack.pop_all().close

    def _forget_unused(self, key: tuple[str, str]) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key], self._rooms[key]


_rooms = ChatRooms()


class ChatOptions(Strict):
    """The address that apprise has for a service; it holds its credentials, so it is a secret."""

    url_secret: StrictStr = Field(
        pattern=NAME_PATTERN,
        description="Secret whose value is the address, such as slack://TOKEN_A/TOKEN_B/TOKEN_C/"
        "#channel or dingtalk://SECRET@TOKEN; see the documentation of apprise.",
    )


class Chat(Channel[ChatOptions]):
    """One message by apprise."""

    Options = ChatOptions

    async def send(self, message: AlertMessage, options: ChatOptions, way: Way) -> str:
        """Send the message, in a thread of its own: apprise blocks, and a chat may hang."""
        address = way.secrets.get("url_secret", "").strip()
        service = address.partition("://")[0].lower()
        if service not in SERVICES:
            raise ChannelFailed(
                f"{service!r} is not a service that messages can be sent to; there are "
                f"{', '.join(sorted(SERVICES))}",
                may_pass=False,
            )
        found = await call_in_own_thread(lambda: _read(address), "chat")
        if service in _HOSTS_OF_THEIR_OWN:
            await _require_allowed(str(found.host or ""), int(found.port or 443), way)
        leave = await _rooms.enter(message.project, address)
        return await call_in_own_thread(lambda: _notify(found, message), "chat", leave)


def _read(address: str) -> Any:
    from apprise import Apprise

    found = Apprise.instantiate(address, suppress_exceptions=True)
    if found is None:
        text = "apprise cannot read the address of the channel; see its documentation"
        raise ChannelFailed(text, may_pass=False)
    return found


async def _require_allowed(host: str, port: int, way: Way) -> None:
    from shoal.runtime.outbound.addresses import AddressPolicy
    from shoal.runtime.outbound.guard import AddressRefused, require_allowed, resolve

    if not host:
        return
    try:
        for one in await resolve(host, port):
            require_allowed(AddressPolicy.of(way.settings), host, one)
    except AddressRefused as error:
        raise ChannelFailed(str(error), may_pass=False) from error
    except (OSError, UnicodeError) as error:
        raise ChannelFailed(f"{host}: its name cannot be looked up") from error


def _notify(found: Any, message: AlertMessage) -> str:
    import logging

    from apprise import NotifyType
    from apprise.logger import LogCapture

    kinds = {"info": NotifyType.INFO, "warning": NotifyType.WARNING}
    kind = kinds.get(message.severity, NotifyType.FAILURE)
    if message.kind == "RESOLVED":
        kind = NotifyType.SUCCESS
    with LogCapture(level=logging.WARNING) as said:  # type: ignore[no-untyped-call]
        done = found.notify(body=message.text, title=message.subject, notify_type=kind)
        text = " ".join(said.getvalue().split())[-300:]
    if not done:
        raise ChannelFailed(text or "the service did not take the message")
    return "taken"
