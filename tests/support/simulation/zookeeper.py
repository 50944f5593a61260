"""A ZooKeeper server of one world, and the connections that processes have to it.

It takes the requests that a ``ZkSession`` makes and answers as a real server does: versions, zxids,
ephemeral nodes, one-shot watches, transactions, sessions that end when nothing of them has been
heard for their timeout. Answers and watch events of a connection arrive in the order in which the
server sent them. A test asks for faults: ``cut`` and ``mute`` of a client, ``break_off`` of a
connection; ``pause``, ``wipe``, ``expel``, ``put`` and ``remove`` of the server.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kazoo import exceptions as kazoo_errors
from kazoo.protocol import serialization as stock
from kazoo.protocol.states import EventType, KazooState, WatchedEvent, ZnodeStat

from shoal.coordination.session import wire
from shoal.coordination.session.heartbeat import SessionHeartbeat
from tests.support.simulation.world import WALL_S, Process, PromptThread, World, imitate

TRIP_S = (0.0005, 0.003)  # from a process to the server, and back
RECONNECT_S = (0.02, 0.4)
SESSION_S = 10.0  # what all sessions of a world have for a timeout
_EPHEMERAL, _SEQUENTIAL = wire.EPHEMERAL, wire.SEQUENTIAL


@dataclass(slots=True)
class Znode:
    data: bytes
    czxid: int
    mtime_ms: int
    session_id: int = 0
    mzxid: int = 0
    pzxid: int = 0
    version: int = 0
    cversion: int = 0
    children: dict[str, None] = field(default_factory=dict)

    def stat(self) -> ZnodeStat:
        return ZnodeStat(
            self.czxid,
            self.mzxid,
            self.mtime_ms,
            self.mtime_ms,
            self.version,
            self.cversion,
            0,
            self.session_id,
            len(self.data),
            len(self.children),
            self.pzxid,
        )


class Refused(Exception):
    """The server's answer is this error of kazoo's."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error()


@dataclass
class ServerSession:
    timeout_s: float
    heard_s: float
    connection: "Connection | None" = None


class SimulatedServer:
    """The tree, the sessions, and a count of what was asked."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.server = self
        self.era = 0  # how often all data was lost
        self.zxid = 0
        self.tree: dict[str, Znode] = {"/": Znode(b"", 0, 0)}
        self.sessions: dict[int, ServerSession] = {}
        self.requests: Counter[str] = Counter()  # but for heartbeats
        # Where sessions made ephemeral nodes: era and czxid of each.
        self.made: dict[str, list[tuple[int, int]]] = {}
        self.removed_s: dict[tuple[int, int], float] = {}  # era, czxid: when an outsider deleted it
        self.disturbed_s = float("-inf")  # when an outsider last changed anything
        self.paused_until_s = 0.0
        self._arrived: list[Callable[[], None]] = []  # while it is paused
        self._last_session = 0
        self._data_watches: dict[str, dict[Connection, None]] = {}
        self._child_watches: dict[str, dict[Connection, None]] = {}

    # ------------------------------------------------------------------ faults

    def pause(self, seconds: float) -> None:
        self.paused_until_s = max(self.paused_until_s, self.world.now_s + seconds)
        self.world.at(self.paused_until_s, self._go_on)

    def resume_now(self) -> None:
        """End a pause before its time."""
        self.paused_until_s = min(self.paused_until_s, self.world.now_s)
        self._go_on()

    def _go_on(self) -> None:
        if not self.is_paused:
            arrived, self._arrived = self._arrived, []
            for action in arrived:
                self.world.after(0.0, action)

    @property
    def is_paused(self) -> bool:
        return self.paused_until_s > self.world.now_s

    def after_pause(self, action: Callable[[], None]) -> None:
        """Have ``action`` called when the present pause is over."""
        self._arrived.append(action)

    def wipe(self) -> None:
        """Lose everything, as servers do whose disks were emptied; numbers begin anew."""
        connections = [s.connection for s in self.sessions.values() if s.connection]
        self.era += 1
        self.disturbed_s = self.world.now_s
        self.zxid = 0
        self.tree = {"/": Znode(b"", 0, 0)}
        self.sessions.clear()
        self._data_watches, self._child_watches = {}, {}
        for connection in connections:
            connection.break_off()

    def expel(self, session_id: int) -> None:
        """An administrator ends a session before its time.

        The client counts on its proof until it is connected again.
        """
        self.disturbed_s = self.world.now_s
        for node in self.tree.values():
            if session_id and node.session_id == session_id:
                self.removed_s[self.era, node.czxid] = self.world.now_s + SESSION_S
        self.expire(session_id)

    def expire(self, session_id: int) -> None:
        """End a session; its client finds out when it is connected again."""
        session = self.sessions.pop(session_id, None)
        if session is None:
            return
        for path in sorted(p for p, node in self.tree.items() if node.session_id == session_id):
            self._begin()
            self._delete(path, -1)
        if session.connection:
            session.connection.break_off()

    def remove(self, path: str) -> None:
        """An administrator deletes a node and all below it."""
        self.disturbed_s = self.world.now_s
        for child in list(self.tree[path].children):
            self.remove(f"{path}/{child}")
        self._begin()
        self.removed_s[self.era, self.tree[path].czxid] = self.world.now_s
        self._delete(path, -1)

    def put(self, path: str, data: bytes) -> None:
        """An administrator writes into a node."""
        self.disturbed_s = self.world.now_s
        self._begin()
        self._set(path, data, -1)

    # ------------------------------------------------------------------ sessions

    def open(self, timeout_s: float, connection: "Connection") -> int:
        self._last_session += 1
        # As on a real server, where the first ones after a restart continue no older ones.
        session_id = (self.era + 1) * 1_000_000 + self._last_session
        self.sessions[session_id] = ServerSession(timeout_s, self.world.now_s, connection)
        self._check_later(session_id)
        return session_id

    def resume(self, session_id: int, connection: "Connection") -> bool:
        session = self.sessions.get(session_id)
        if session is None:
            return False
        session.heard_s, session.connection = self.world.now_s, connection
        return True

    def close(self, session_id: int) -> None:
        if session := self.sessions.get(session_id):
            session.connection = None
            self.expire(session_id)

    def _check_later(self, session_id: int) -> None:
        session = self.sessions.get(session_id)
        if session is None:
            return
        if self.is_paused:
            # Afterwards the session is heard first, or not: both happen.
            delay_s = self.world.random.choice([0.0, 0.01])
            self.after_pause(
                lambda: self.world.after(delay_s, lambda: self._check_later(session_id))
            )
            return
        ends_s = session.heard_s + session.timeout_s
        if ends_s <= self.world.now_s:
            self.expire(session_id)
            return
        self.world.at(ends_s, lambda: self._check_later(session_id))

    # ------------------------------------------------------------------ requests

    def answer(self, connection: "Connection", session_id: int, request: Any) -> Any:
        """Do a request, and return kazoo's answer or error."""
        session = self.sessions.get(session_id)
        if session is None:
            return kazoo_errors.SessionExpiredError()
        session.heard_s = self.world.now_s
        try:
            return self._do(connection, session_id, request)
        except Refused as refusal:
            return refusal.error

    def _do(self, connection: "Connection", session_id: int, request: Any) -> Any:
        kind = type(request)
        if kind is stock.Exists:
            self.requests["exists"] += 1
            node = self.tree.get(request.path)
            if request.watcher:
                self._data_watches.setdefault(request.path, {})[connection] = None
            return node.stat() if node else None
        if kind is stock.GetData:
            self.requests["get"] += 1
            node = self._node(request.path)
            if request.watcher:
                self._data_watches.setdefault(request.path, {})[connection] = None
            return node.data, node.stat()
        if kind is stock.GetChildren2:
            self.requests["children"] += 1
            node = self._node(request.path)
            if request.watcher:
                self._child_watches.setdefault(request.path, {})[connection] = None
            return list(node.children), node.stat()
        if kind is wire._Ephemerals:
            self.requests["ephemerals"] += 1
            below = request.path.rstrip("/") + "/"
            return [
                path
                for path, node in self.tree.items()
                if node.session_id == session_id and path.startswith(below)
            ]
        if kind is stock.Sync:
            return request.path
        if kind is wire._Multi:
            return self._transaction(session_id, request.operations)
        self._begin()
        name, result = self._write(session_id, request)
        self.requests[name] += 1
        return result

    def _write(self, session_id: int, request: Any) -> tuple[str, Any]:
        kind = type(request)
        if kind is wire._Create:
            return "create", self._create(session_id, request.path, request.data, request.flags)
        if kind is stock.SetData:
            return "set", self._set(request.path, request.data, request.version).stat()
        if kind is wire._Delete:
            self._delete(request.path, request.version)
            return "delete", None
        assert kind is stock.CheckVersion, request
        node = self._node(request.path)
        if request.version not in (-1, node.version):
            raise Refused(kazoo_errors.BadVersionError)
        return "check", None

    def _transaction(self, session_id: int, operations: list[Any]) -> Any:
        if any(not isinstance(each, stock.CheckVersion) for each in operations):
            self.requests["multi"] += 1
        self._begin()
        undo: list[Callable[[], None]] = []
        fired: list[Callable[[], None]] = []
        results: list[Any] = []
        self._undo, self._fired = undo, fired
        for index, operation in enumerate(operations):
            try:
                results.append(self._write(session_id, operation)[1])
            except Refused as refusal:
                for action in reversed(undo):
                    action()
                done = [kazoo_errors.RolledBackError() for _ in range(index)]
                rest = len(operations) - index - 1
                left = [kazoo_errors.RuntimeInconsistency() for _ in range(rest)]
                self._undo = self._fired = None
                return [*done, refusal.error, *left]
        self._undo = self._fired = None
        for action in fired:
            action()
        return results

    _undo: list[Callable[[], None]] | None = None
    _fired: list[Callable[[], None]] | None = None

    def _begin(self) -> None:
        self.zxid += 1

    def _node(self, path: str) -> Znode:
        if (node := self.tree.get(path)) is None:
            raise Refused(kazoo_errors.NoNodeError)
        return node

    @property
    def _now_ms(self) -> int:
        return int((WALL_S + self.world.now_s) * 1000)

    def _create(self, session_id: int, path: str, data: bytes, flags: int) -> Any:
        parent_path, _, name = path.rpartition("/")
        parent = self._node(parent_path or "/")
        if parent.session_id:
            raise Refused(kazoo_errors.NoChildrenForEphemeralsError)
        if flags & _SEQUENTIAL:
            name = f"{name}{parent.cversion:010d}"
            path = f"{parent_path}/{name}"
        if path in self.tree:
            raise Refused(kazoo_errors.NodeExistsError)
        owner = session_id if flags & _EPHEMERAL else 0
        node = Znode(data, self.zxid, self._now_ms, owner, self.zxid, self.zxid)
        self._note_parent(parent)
        parent.cversion, parent.pzxid = parent.cversion + 1, self.zxid
        parent.children[name] = None
        self.tree[path] = node
        if owner:
            self.made.setdefault(path, []).append((self.era, self.zxid))
        if self._undo is not None:

            def undo() -> None:
                del self.tree[path], parent.children[name]

            self._undo.append(undo)
        self._fire(self._data_watches, EventType.CREATED, path)
        self._fire(self._child_watches, EventType.CHILD, parent_path or "/")
        return path, node.stat()

    def _note_parent(self, parent: Znode) -> None:
        if self._undo is not None:
            cversion, pzxid = parent.cversion, parent.pzxid

            def undo() -> None:
                parent.cversion, parent.pzxid = cversion, pzxid

            self._undo.append(undo)

    def _set(self, path: str, data: bytes, version: int) -> Znode:
        node = self._node(path)
        if version not in (-1, node.version):
            raise Refused(kazoo_errors.BadVersionError)
        if self._undo is not None:
            before = node.data, node.version, node.mzxid, node.mtime_ms

            def undo() -> None:
                node.data, node.version, node.mzxid, node.mtime_ms = before

            self._undo.append(undo)
        node.data, node.version = data, node.version + 1
        node.mzxid, node.mtime_ms = self.zxid, self._now_ms
        self._fire(self._data_watches, EventType.CHANGED, path)
        return node

    def _delete(self, path: str, version: int) -> None:
        node = self._node(path)
        if version not in (-1, node.version):
            raise Refused(kazoo_errors.BadVersionError)
        if node.children:
            raise Refused(kazoo_errors.NotEmptyError)
        parent_path, _, name = path.rpartition("/")
        parent = self._node(parent_path or "/")
        self._note_parent(parent)
        del self.tree[path], parent.children[name]
        parent.cversion, parent.pzxid = parent.cversion + 1, self.zxid
        if self._undo is not None:

            def undo() -> None:
                self.tree[path] = node
                parent.children[name] = None

            self._undo.append(undo)
        self._fire(self._data_watches, EventType.DELETED, path)
        self._fire(self._child_watches, EventType.DELETED, path)
        self._fire(self._child_watches, EventType.CHILD, parent_path or "/")

    def _fire(self, watches: dict[str, dict[Any, None]], kind: str, path: str) -> None:
        if self._fired is not None:
            self._fired.append(lambda: self._fire_now(watches, kind, path))
        else:
            self._fire_now(watches, kind, path)

    def _fire_now(self, watches: dict[str, dict[Any, None]], kind: str, path: str) -> None:
        for connection in watches.pop(path, {}):
            connection.notify(kind, path)

    def forget_watches(self, connection: "Connection") -> None:
        for watches in (self._data_watches, self._child_watches):
            for path in [path for path, who in watches.items() if connection in who]:
                del watches[path][connection]
                if not watches[path]:
                    del watches[path]


class Connection:
    """One TCP connection. ``deaf_from_s``: what comes later does not reach the server."""

    def __init__(self, client: "SimulatedClient", server: SimulatedServer) -> None:
        self.client, self.server, self.world = client, server, server.world
        self.stands = True  # on the client's side
        self.deaf_from_s = float("inf")
        self.is_mute = False  # nothing comes back
        self._sent_s = self._received_s = 0.0

    def send(self, session_id: int, request: Any, done: Callable[[Any], None]) -> None:
        """Send a request; ``done`` is called on the client's thread."""
        arrives_s = max(self._sent_s, self.world.now_s + self.world.random.uniform(*TRIP_S))
        self._sent_s = arrives_s
        self.world.at(arrives_s, lambda: self._arrive(session_id, request, done))

    def _arrive(self, session_id: int, request: Any, done: Callable[[Any], None]) -> None:
        if self.world.now_s >= self.deaf_from_s:
            return
        if self.server.is_paused:
            self.server.after_pause(lambda: self._arrive(session_id, request, done))
            return
        answer = self.server.answer(self, session_id, request)
        self._come_back(lambda: done(answer))

    def notify(self, kind: str, path: str) -> None:
        self._come_back(lambda: self.client.fire(kind, path))

    def _come_back(self, action: Callable[[], None]) -> None:
        if self.is_mute:
            return
        arrives_s = max(self._received_s, self.world.now_s + self.world.random.uniform(*TRIP_S))
        self._received_s = arrives_s

        def receive() -> None:
            if self.stands:
                self.client.process.on_thread(lambda: action() if self.stands else None)

        self.world.at(arrives_s, receive)

    def break_off(self) -> None:
        """Break: some of what is on its way arrives still, and no answer does."""
        if not self.stands:
            return
        self.stands = False
        self.deaf_from_s = min(
            self.deaf_from_s, self.world.now_s + self.world.random.choice([0.0, *TRIP_S])
        )
        self.server.forget_watches(self)
        for session in self.server.sessions.values():
            if session.connection is self:
                session.connection = None
        self.client.process.on_thread(lambda: self.client.broke(self))


class SimulatedClient:
    """What ``session.client.Client`` is to a session, connected to a simulated server."""

    def __init__(self, process: Process, server: SimulatedServer, timeout_s: float) -> None:
        self.process, self.server, self.world = process, server, server.world
        self.negotiated_timeout_s = timeout_s
        self._session_id: int | None = None
        self._session_passwd = b""
        self.cut_until_s = 0.0  # the network lets nothing through
        self.mute_until_s = 0.0  # the network lets nothing back
        self.is_stopped = self.is_refused = False
        self._listeners: list[Callable[[str], Any]] = []
        self._connection: Connection | None = None
        self._state = KazooState.LOST
        self._waiting: list[tuple[Any, int, Callable[[Any, Exception | None], None]]] = []
        self._pending: dict[int, Callable[[Any, Exception | None], None]] = {}
        self._sent = 0
        self.data_watchers: dict[str, dict[Any, None]] = {}
        self.child_watchers: dict[str, dict[Any, None]] = {}
        process.connections.append(self)

    # ------------------------------------------------------------------ what a session calls

    def add_listener(self, listener: Callable[[str], Any]) -> None:
        self._listeners.append(listener)

    def start_async(self) -> None:
        self._connect_later()

    def stop(self) -> None:
        self.is_stopped = True
        if self._connection and self._session_id and self._connection.stands:
            session_id, connection = self._session_id, self._connection
            if not connection.is_mute and self.world.now_s >= self.cut_until_s:
                self.server.close(session_id)
            connection.stands = False
            self.server.forget_watches(connection)
        self._end_session(kazoo_errors.ConnectionClosedError)

    def close(self) -> None:
        return

    def submit(
        self,
        request: Any,
        body: bytes,
        session_id: int,
        done: Callable[[Any, Exception | None], None],
    ) -> None:
        if self._session_id != session_id:
            done(None, kazoo_errors.SessionExpiredError())
        elif self.is_stopped:
            done(None, kazoo_errors.ConnectionClosedError())
        elif self._connection is None:
            self._waiting.append((request, session_id, done))
        else:
            self._send(request, session_id, done)

    def doubt(self, session_id: int) -> None:
        if self._session_id == session_id and self._connection:
            self._connection.break_off()

    def drop_connection(self) -> None:
        if self._connection:
            self._connection.break_off()

    # ------------------------------------------------------------------ faults

    def cut(self, seconds: float) -> None:
        """Let nothing through in either direction. The connection seems to stand."""
        self.cut_until_s = self.world.now_s + seconds
        if self._connection:
            self._connection.deaf_from_s = self.world.now_s
            self._connection.is_mute = True

    def mute(self, seconds: float) -> None:
        """Let nothing back: the server hears the session, and does what it is asked."""
        self.mute_until_s = self.world.now_s + seconds
        if self._connection:
            self._connection.is_mute = True

    def mend(self) -> None:
        """Let everything through again. A connection that lets none through breaks."""
        self.cut_until_s = self.mute_until_s = self.world.now_s
        if self._connection and self._connection.is_mute:
            self._connection.break_off()

    def vanish(self) -> None:
        """The process is dead; the server finds out by the session's timeout."""
        self.is_stopped = True
        if self._connection:
            self._connection.stands = False
            self._connection.deaf_from_s = self.world.now_s + self.world.random.choice([0.0, 0.002])
            self.server.forget_watches(self._connection)

    # ------------------------------------------------------------------ the connection's thread

    def _connect_later(self) -> None:
        self.world.after(
            self.world.random.uniform(*RECONNECT_S), lambda: self.process.on_thread(self._connect)
        )

    def _connect(self) -> None:
        if self.is_stopped or self._connection is not None:
            return
        now_s = self.world.now_s
        if now_s < max(self.cut_until_s, self.mute_until_s, self.server.paused_until_s):
            self._connect_later()
            return
        if self._session_id is not None and self._session_id not in self.server.sessions:
            self._end_session(kazoo_errors.SessionExpiredError)
            self._connect_later()
            return
        connection = Connection(self, self.server)
        if self._session_id is None:
            self._session_id = self.server.open(self.negotiated_timeout_s, connection)
        else:
            self.server.resume(self._session_id, connection)
        self._connection = connection
        self._tell(KazooState.CONNECTED)
        waiting, self._waiting = self._waiting, []
        for request, session_id, done in waiting:
            self._send(request, session_id, done)

    def _send(
        self, request: Any, session_id: int, done: Callable[[Any, Exception | None], None]
    ) -> None:
        self._sent += 1
        number, connection = self._sent, self._connection
        assert connection is not None
        self._pending[number] = done

        def answered(answer: Any) -> None:
            if self._pending.pop(number, None) is None:
                return
            if isinstance(answer, Exception):
                done(None, answer)
                return
            watcher = getattr(request, "watcher", None)
            if watcher is not None:
                is_list = type(request) is stock.GetChildren2
                watchers = self.child_watchers if is_list else self.data_watchers
                watchers.setdefault(request.path, {})[watcher] = None
            done(answer, None)

        connection.send(session_id, request, answered)

    def fire(self, kind: str, path: str) -> None:
        found: dict[Any, None] = {}
        if kind in (EventType.CREATED, EventType.CHANGED, EventType.DELETED):
            found |= self.data_watchers.pop(path, {})
        if kind in (EventType.CHILD, EventType.DELETED):
            found |= self.child_watchers.pop(path, {})
        for watcher in found:
            watcher(WatchedEvent(kind, KazooState.CONNECTED, path))

    def broke(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        self._fail_requests(kazoo_errors.ConnectionLoss)
        self._tell(KazooState.SUSPENDED)
        self._reset_watchers()
        if not self.is_stopped:
            self._connect_later()

    def _end_session(self, error: type[Exception]) -> None:
        self._connection = None
        self._fail_requests(error)
        self._tell(KazooState.LOST)
        self._reset_watchers()
        self._session_id = None

    def _fail_requests(self, error: type[Exception]) -> None:
        pending, self._pending = self._pending, {}
        waiting, self._waiting = self._waiting, []
        for done in [*pending.values(), *(done for _, _, done in waiting)]:
            done(None, error())

    def _reset_watchers(self) -> None:
        watchers = [
            watcher
            for of_kind in (self.data_watchers, self.child_watchers)
            for some in of_kind.values()
            for watcher in some
        ]
        self.data_watchers, self.child_watchers = {}, {}
        for watcher in watchers:
            watcher(WatchedEvent(EventType.NONE, KazooState.SUSPENDED, None))

    def _tell(self, state: str) -> None:
        if state != self._state:
            self._state = state
            for listener in self._listeners:
                listener(state)

    @property
    def is_connected(self) -> bool:
        """Whether it has a connection, by which answers come."""
        return self._connection is not None and not self._connection.is_mute

    @property
    def watched(self) -> list[str]:
        """The paths of all watches."""
        return [
            path
            for of_kind in (self.data_watchers, self.child_watchers)
            for path, some in of_kind.items()
            for _ in some
        ]


class SimulatedHeartbeat(SessionHeartbeat):
    """The heartbeat, whose thread is a series of moments on the world's agenda."""

    def __init__(self, client: Any, *args: Any) -> None:
        super().__init__(client, *args)
        self._planned = 0
        self._wake = self  # type: ignore[assignment]

    def start(self) -> None:
        self._turned_at = self._client.world.now_s
        self._plan(0.0)

    def set(self) -> None:
        """Wake the thread."""
        self._plan(0.0)

    def _plan(self, delay_s: float) -> None:
        self._planned += 1
        number = self._planned
        client = self._client
        client.world.after(delay_s, lambda: client.process.on_thread(lambda: self._moment(number)))

    def _moment(self, number: int) -> None:
        if not self._over and number == self._planned:
            self._beat()
            self._plan(self._pause_s())

    def _hold(self, session: int) -> None:
        """A loop that stands still while its threads run is not simulated."""


@contextmanager
def simulated_sessions() -> Iterator[None]:
    """Let each ``ZkSession`` connect to the server of the process that enters it."""

    def connect(_: str, timeout_s: float, *__: Any) -> SimulatedClient:
        process = asyncio.get_running_loop().process  # type: ignore[attr-defined]
        return SimulatedClient(process, process.world.server, timeout_s)

    with imitate(
        shoal__coordination__session__session={
            "Client": connect,
            "SessionHeartbeat": SimulatedHeartbeat,
            "threading": SimpleNamespace(Thread=PromptThread),
        }
    ):
        yield
