"""The only module that touches kazoo: its client, made fit to serve an event loop.

kazoo keeps the connection: finding a server, reconnecting, pings, the framing of requests. None
of its recipes are used, and none of its blocking calls. What differs from the stock client:

- Answers, watch events and state changes reach us on the connection thread in the order in which
  the server sent them. (The stock handler runs answers and events on two further threads.)
- Handing over a request never blocks: the stock client wakes its thread through a socket pair
  that is full after some 280 requests while the server is away.
- The negotiated session timeout is kept, and a multi tells the zxid of what it created.

These use inner parts of kazoo 2.11; the integration tests exercise every one of them.
"""

import logging
import math
import os
import select
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler
from kazoo.protocol import serialization as wire
from kazoo.protocol.connection import ConnectionHandler
from kazoo.retry import KazooRetry
from kazoo.security import OPEN_ACL_UNSAFE

from shoal.coordination import errors

PERSISTENT, EPHEMERAL, SEQUENTIAL = 0, 1, 2


class Stat(NamedTuple):
    """What ZooKeeper knows of a znode. Zxids grow with every change in the whole tree."""

    czxid: int  # zxid of its creation
    mzxid: int  # zxid of the last change of its data
    pzxid: int  # zxid of the last creation or deletion of a child
    version: int  # changes of its data so far
    children_version: int  # creations and deletions of children so far
    session_id: int  # the session that holds it, if it is ephemeral, else 0
    children: int  # how many there are now
    mtime_ms: int  # when its data last changed, on the wall clock of the ensemble's leader


def stat_of(raw: Any) -> Stat:
    return Stat(
        raw.czxid,
        raw.mzxid,
        raw.pzxid,
        raw.version,
        raw.cversion,
        raw.ephemeralOwner,
        raw.numChildren,
        raw.mtime,
    )


class _DirectResult(AsyncResult):  # type: ignore[misc]  # kazoo has no types
    """Runs its callback at once, on the thread that sets it (mostly the connection's)."""

    def _do_callbacks(self) -> None:
        for callback in self._callbacks:
            callback(self)


class _Wakeup:
    """Both ends of a counting pipe that is never full: an eventfd posing as a socket."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE)

    def fileno(self) -> int:
        return self._fd

    def send(self, data: bytes) -> int:
        os.eventfd_write(self._fd, len(data))
        return len(data)

    def recv(self, _size: int) -> bytes:
        os.eventfd_read(self._fd)  # BlockingIOError when empty, as a socket has it
        return b"\0"

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Runs every callback on the connection thread; callbacks only hand over and return."""

    def start(self) -> None:
        self._running = True  # no worker threads: nothing is queued for them

    def stop(self) -> None:
        self._running = False

    def async_result(self) -> _DirectResult:
        return _DirectResult(self)

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_socket_pair(self) -> tuple[Any, Any]:
        if not hasattr(os, "eventfd"):
            ends: tuple[Any, Any] = super().create_socket_pair()
            return ends
        wakeup = _Wakeup()
        return wakeup, wakeup

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], _: Any, timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """poll(2); the stock one makes and closes an epoll descriptor for each call."""
        poll = select.poll()
        try:
            for reader in readers:
                poll.register(reader, select.POLLIN)
            for writer in writers:
                poll.register(writer, select.POLLOUT)
        except ValueError as error:  # closed meanwhile
            raise ConnectionResetError("the socket was closed") from error
        ready = {fd for fd, _ in poll.poll(None if timeout is None else math.ceil(timeout * 1000))}
        return (
            [reader for reader in readers if reader.fileno() in ready],
            [writer for writer in writers if writer.fileno() in ready],
            [],
        )


class _Connection(ConnectionHandler):  # type: ignore[misc]
    def _connect(self, host: str, hostip: str, port: int) -> tuple[int, int]:
        read_timeout, connect_timeout = super()._connect(host, hostip, port)
        self.client.negotiated_timeout_s = read_timeout * 1.5 / 1000  # kazoo keeps two thirds
        return read_timeout, connect_timeout


class _Multi(wire.Transaction):  # type: ignore[misc]
    """A transaction whose creates are answered with the new node's stat."""

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        results: list[Any] = []
        header, offset = wire.MultiHeader.deserialize(data, offset)
        while not header.done:
            if header.type == wire.Create2.type:
                path, offset = wire.read_string(data, offset)
                stat = wire.ZnodeStat._make(wire.stat_struct.unpack_from(data, offset))
                results.append((path, stat))
                offset += wire.stat_struct.size
            elif header.type == wire.SetData.type:
                results.append(wire.ZnodeStat._make(wire.stat_struct.unpack_from(data, offset)))
                offset += wire.stat_struct.size
            elif header.type == -1:
                code = wire.int_struct.unpack_from(data, offset)[0]
                results.append(kazoo_errors.EXCEPTIONS[code]())
                offset += wire.int_struct.size
            else:
                results.append(None)
            header, offset = wire.MultiHeader.deserialize(data, offset)
        return results


class Client(KazooClient):  # type: ignore[misc]
    """One connection to ZooKeeper and, while it lasts, one session. All paths are absolute.

    ``negotiated_timeout_s`` is known before the first request is answered.
    """

    def __init__(self, hosts: str, timeout_s: float) -> None:
        handler = _LoopHandler()
        super().__init__(
            hosts=hosts,
            timeout=timeout_s,
            handler=handler,
            connection_retry=KazooRetry(
                max_tries=-1, delay=0.05, max_delay=1.0, sleep_func=handler.sleep_func
            ),
            logger=logging.getLogger("kazoo"),
        )
        self.negotiated_timeout_s = timeout_s
        self._connection = _Connection(self, self._conn_retry.copy(), logger=self.logger)

    def submit(
        self, request: Any, session_id: int, done: Callable[[Any, Exception | None], None]
    ) -> None:
        """Send ``request`` in this session; ``done(answer, error)`` is called on any thread.

        kazoo may report a request twice when the client is closed meanwhile: the first counts.
        """
        if self._session_id != session_id:  # the caller has not heard of the new one yet
            done(None, kazoo_errors.SessionExpiredError())
            return
        result = _DirectResult(self.handler)
        result.rawlink(lambda _: done(result.value, result.exception))
        self._call(request, result)

    def drop_connection(self) -> None:
        """Break the connection, but not the session; kazoo reconnects."""
        try:
            self._connection._socket.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            return  # there is none


def create(path: str, data: bytes, flags: int) -> Any:
    return wire.Create2(path, data, OPEN_ACL_UNSAFE, flags)


def delete(path: str, version: int = -1) -> Any:
    return wire.Delete(path, version)


def set_data(path: str, data: bytes, version: int = -1) -> Any:
    return wire.SetData(path, data, version)


def check(path: str, version: int) -> Any:
    return wire.CheckVersion(path, version)


def get(path: str, watch: Any = None) -> Any:
    return wire.GetData(path, watch)


def exists(path: str, watch: Any = None) -> Any:
    return wire.Exists(path, watch)


def children(path: str, watch: Any = None) -> Any:
    return wire.GetChildren2(path, watch)


def sync(path: str) -> Any:
    return wire.Sync(path)


def multi(requests: Sequence[Any]) -> Any:
    return _Multi(list(requests))


_PATH_ERRORS: dict[type[Exception], type[errors.PathError]] = {
    kazoo_errors.NoNodeError: errors.NoNode,
    kazoo_errors.NodeExistsError: errors.NodeExists,
    kazoo_errors.NotEmptyError: errors.NotEmpty,
    kazoo_errors.BadVersionError: errors.BadVersion,
    kazoo_errors.NoAuthError: errors.AccessDenied,
}
_NOT_DONE = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)


def translate(error: Exception, verb: str, path: str) -> errors.CoordinationError:
    """Return our error for one of kazoo's."""
    if known := _PATH_ERRORS.get(type(error)):
        return known(path)
    if isinstance(error, kazoo_errors.ConnectionClosedError):
        return errors.SessionClosed(f"{verb} {path}")
    if isinstance(error, kazoo_errors.SessionExpiredError):
        return errors.SessionLost(f"{verb} {path}")
    if isinstance(error, kazoo_errors.ConnectionLoss | kazoo_errors.OperationTimeoutError):
        return errors.ConnectionLoss(f"{verb} {path}")
    return errors.ServerError(path, getattr(error, "code", 0) or 0, type(error).__name__)


def translate_multi(
    results: Sequence[Any], paths: Sequence[str]
) -> errors.TransactionFailed | None:
    """Return the failure that the results of a multi tell, or None if all succeeded."""
    failures: list[errors.PathError | None] = [None] * len(results)
    rolled_back = False
    for index, (result, path) in enumerate(zip(results, paths, strict=True)):
        if isinstance(result, Exception):
            rolled_back = True
            if not isinstance(result, _NOT_DONE):
                error = translate(result, "multi", path)
                assert isinstance(error, errors.PathError), error
                failures[index] = error
    if not rolled_back:
        return None
    if not any(failures):  # rolled back, yet no operation says why
        failures[0] = errors.ServerError(paths[0], 0, "RolledBack")
    return errors.TransactionFailed(failures)
