"""What a session gives and takes: nodes, what is known of them, operations, and events."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from shoal.coordination.session.wire import Stat


class Node(NamedTuple):
    """A znode's data, and what ZooKeeper knows of it, as of one moment."""

    data: bytes
    stat: Stat


class Children(NamedTuple):
    """The names of a znode's children, in no order, and what is known of their parent."""

    names: list[str]
    stat: Stat


class Created(NamedTuple):
    """A new znode. ``czxid`` is greater than that of every node created before, anywhere."""

    path: str
    czxid: int
    session_id: int  # 0 if it is not ephemeral


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = -1  # -1: whatever it is


@dataclass(frozen=True, slots=True)
class SetData:
    path: str
    data: bytes
    version: int = -1


@dataclass(frozen=True, slots=True)
class Check:
    """Let the transaction fail unless the node exists with this version of its data."""

    path: str
    version: int = -1


Operation = Create | Delete | SetData | Check
Outcome = Created | Stat | None  # of a Create, a SetData, the others


class SessionState(StrEnum):
    CONNECTED = "CONNECTED"  # the server answered a moment ago
    SUSPENDED = "SUSPENDED"  # no connection: the session may be over, which cannot be known here
    LOST = "LOST"  # the session is over (the server said so, after we reconnected), or not begun


class WatchKind(StrEnum):
    CREATED = "CREATED"
    DELETED = "DELETED"
    CHANGED = "CHANGED"
    CHILD = "CHILD"
    NONE = "NONE"  # the connection broke: the watch is gone, anything may have happened


@dataclass(frozen=True, slots=True)
class WatchEvent:
    kind: WatchKind
    path: str  # "" when kind is NONE


WatchCallback = Callable[[WatchEvent], None]
