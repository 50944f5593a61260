"""kazoo's client, made fit to serve an event loop.

kazoo keeps the connection: finding a server, reconnecting, pings, the framing of requests. None
of its recipes are used, and none of its blocking calls. What differs from the stock client:

- Answers, watch events and state changes reach us on the connection thread in the order in which
  the server sent them. (The stock handler runs answers and events on two further threads.)
- Handing over a request never blocks: the stock client wakes its thread through a socket pair
  that is full after some 280 requests while the server is away.
- All requests that wait go out with one system call, and answers that arrived together are read
  with one.
- The negotiated session timeout is kept.
- The numbers of requests go on from one connection to the next. A server may still be at work on
  requests of the connection before, and takes those of the new one for them if they have the same
  numbers: answers come in a wrong order then. (The Java client does so, too.)
- An answer that cannot be understood ends the connection, not the thread that keeps it.
- TLS verifies the server's name and reads its files at each connection. Shutting a connection down
  from another thread does not turn it into one in clear.
- A connection that breaks while a user is authenticated is a broken connection; the stock client
  takes it for a refused password, and ends for good.
- A server that demands a credential and is shown none ends the client, as one does that refuses a
  credential. The stock client connects again and again.
- A server that accepts a connection and then says nothing costs a third of the session timeout;
  with a single server, the stock client waits for it until the session is over.

These use inner parts of kazoo 2.11; the integration tests exercise every one of them.
"""

import logging
import math
import os
import random
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import serialization as stock
from kazoo.protocol.connection import ConnectionDropped, ConnectionHandler
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry

from shoal.coordination.errors import BadCertificate
from shoal.coordination.session.security.digest_md5 import DigestMd5, NotDigestMd5
from shoal.coordination.session.security.tls import Tls
from shoal.coordination.session.wire import says_refused

CHUNK = 65_536  # bytes to receive at once: more than a record of TLS, so none is left half read
# Of the session timeout, how long each step of a connection may take: two more can be tried.
_ATTEMPT = 1 / 3

_OPENING_BYTES = 1024  # of an answer that opens a connection, at most

_REQUEST = struct.Struct("!iii")  # length of what follows, xid, type

# Answers to a wrong user or password; the second by a server that lets in no connection without.
_REFUSALS = (kazoo_errors.AuthFailedError.code, kazoo_errors.SessionClosedRequireSaslError.code)

# A socket that does not block has nothing to give or takes nothing at the moment.
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class FailedConnection(NamedTuple):
    """A server that gave no session. ``address`` is None if its name cannot be resolved."""

    server: str  # host:port, as it was given
    address: tuple[str, int] | None
    error: BaseException


class _Answer:
    """Passes an answer on at once, on the thread that sets it (mostly the connection's)."""

    __slots__ = ("_done", "_on_refused", "body")

    def __init__(
        self,
        body: bytes,
        done: Callable[[Any, Exception | None], None],
        on_refused: Callable[[], None],
    ) -> None:
        self.body, self._done = body, done  # the body of the request
        self._on_refused = on_refused

    def set(self, value: Any = None) -> None:
        self._done(value, None)

    def set_exception(self, error: Exception) -> None:
        if says_refused(error):
            self._on_refused()
        self._done(None, error)


class _Wakeup:
    """Both ends of a pipe that is never full: an eventfd posing as a socket.

    Any number of wake-ups make one, which ``recv`` takes before it is known what they are for.
    """

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_set = False

    def fileno(self) -> int:
        return self._fd

    def send(self, data: bytes) -> int:
        if not self._is_set:
            self._is_set = True
            os.eventfd_write(self._fd, 1)
        return len(data)

    def recv(self, _size: int) -> bytes:
        try:
            os.eventfd_read(self._fd)  # BlockingIOError when empty, as a socket has it
        finally:
            self._is_set = False  # not before: a wake-up in between would be taken for read
        return b"\0"

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Runs every callback on the connection thread; callbacks only hand over and return."""

    def __init__(self, tls: Tls | None) -> None:
        super().__init__()
        self._tls = tls
        self._poll, self._polled = select.poll(), dict[int, int]()  # of the connection thread

    def start(self) -> None:
        self._running = True  # no worker threads: nothing is queued for them

    def stop(self) -> None:
        self._running = False

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_connection(
        self, address: tuple[str, int], *, hostname: str, timeout: float, **options: Any
    ) -> socket.socket:
        timeout_s = timeout * _ATTEMPT
        if self._tls is not None:
            return _create_encrypted(self._tls, address, hostname, timeout_s)
        connected: socket.socket = super().create_connection(
            address=address, hostname=hostname, timeout=timeout_s, **options
        )
        return connected

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
        wanted = {source.fileno(): select.POLLIN for source in readers}
        wanted |= {sink.fileno(): select.POLLOUT for sink in writers}
        if wanted != self._polled:
            if -1 in wanted:  # closed meanwhile
                raise ConnectionResetError("the socket was closed")
            self._poll, self._polled = select.poll(), wanted
            for fd, events in wanted.items():
                self._poll.register(fd, events)
        ready = self._poll.poll(None if timeout is None else math.ceil(timeout * 1000))
        found = {fd for fd, _ in ready}
        return (
            [reader for reader in readers if reader.fileno() in found],
            [writer for writer in writers if writer.fileno() in found],
            [],
        )


def _create_encrypted(
    tls: Tls, address: tuple[str, int], hostname: str, timeout_s: float
) -> ssl.SSLSocket:
    """Connect to an IP address, with TLS to a server that proves to be ``hostname``."""
    try:
        context = tls.context()
    except BadCertificate as error:  # it was good at the start: it may be half renewed
        raise ConnectionDropped(str(error)) from error
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    # Before it is connected: the wrapping of one that the server resets meanwhile loses it.
    connected = context.wrap_socket(socket.socket(family), server_hostname=hostname)
    try:
        connected.settimeout(timeout_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.connect(address)
    except BaseException:
        connected.close()
        raise
    return connected


class _Connection(ConnectionHandler):  # type: ignore[misc]
    _sequence = 0  # the number of the last request, on all connections so far
    _received = b""  # and not parsed yet
    _is_opening = False  # a request that opens the connection waits for its answer
    _refused_since: float | None = None  # servers close our connections without an answer

    def _expand_client_hosts(self) -> list[tuple[str, str, int]]:
        """Resolve the names. The stock client ends for good with a name that IDNA cannot encode."""
        found: list[tuple[str, str, int]] = []
        for host, port in self.client.hosts:
            try:
                infos = socket.getaddrinfo(host, port, 0, 0, socket.IPPROTO_TCP)
            except (OSError, UnicodeError) as error:
                self._failed(host, None, port, error)
            else:
                found += [(host, str(info[4][0]), port) for info in infos]
        random.shuffle(found)
        return found

    def _failed(self, host: str, ip: str | None, port: int, error: BaseException) -> None:
        server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        address = None if ip is None else (ip, port)
        self.client.on_failed(FailedConnection(server, address, error))

    def _connect_attempt(self, *args: Any) -> Any:
        try:
            return super()._connect_attempt(*args)
        except Exception:  # noqa: BLE001 - it is in the log; the next connection may be better
            if self.client._state != KeeperState.CONNECTING:
                self.client._session_callback(KeeperState.CONNECTING)
            return None

    def _connect(self, host: str, hostip: str, port: int) -> tuple[int, int]:
        self._received = b""
        refused_since = self._refused_since
        patience_s = self.client.negotiated_timeout_s
        if refused_since is not None and time.monotonic() > refused_since + patience_s:
            # A server refuses a client that has seen more changes than itself. It may be behind the
            # others, or all of them have come back without their data: then the numbers begin anew,
            # and no server would ever take us. The session is over by now in either case; that is
            # what the server answers to a client that it takes.
            self.client.last_zxid = 0
        try:
            read_timeout, connect_timeout = super()._connect(host, hostip, port)
        except (kazoo_errors.SessionExpiredError, kazoo_errors.AuthFailedError):
            raise  # an answer about the session; the connection is all right
        except Exception as error:
            is_late = isinstance(error, self.handler.timeout_exception)
            self._failed(host, hostip, port, TimeoutError() if is_late else error)
            raise
        self._refused_since = None
        self.client.negotiated_timeout_s = read_timeout * 1.5 / 1000  # kazoo keeps two thirds
        return read_timeout, connect_timeout

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        """Exchange a request that opens the connection."""
        patience_s = min(timeout, self.client.negotiated_timeout_s * _ATTEMPT)
        self._is_opening = True
        try:
            return super()._invoke(patience_s, request, xid)
        except ConnectionDropped:
            if isinstance(request, stock.Connect) and self._refused_since is None:
                self._refused_since = time.monotonic()
            raise
        finally:
            self._is_opening = False

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        """Authenticate the connection. Raises AuthFailedError if the server refuses the user."""
        exchange = DigestMd5(*self.client.user)
        try:
            response = exchange.respond(self._sasl(1, b"", timeout))
            exchange.verify(self._sasl(2, response, timeout))
        except NotDigestMd5 as error:  # another server may do better
            raise ConnectionDropped(f"{host} does not authenticate us: {error}") from error

    def _sasl(self, number: int, token: bytes, timeout: float) -> bytes:
        """Exchange a token with the server."""
        self._submit(stock.SASL(token), timeout, number)
        header, content, offset = self._read_header(timeout)
        if header.err in _REFUSALS:
            raise kazoo_errors.AuthFailedError("the server refuses the user or the password")
        if header.err:
            raise NotDigestMd5(f"it answered with the error {header.err}")
        challenge, _ = stock.SASL.deserialize(content, offset)
        return challenge or b""

    def _send_request(self, read_timeout: float, connect_timeout: float) -> None:
        """Send all requests that wait."""
        # First: a request that comes after we have read the queue wakes us again.
        with suppress(BlockingIOError):
            self._read_sock.recv(1)
        waiting, pending = self.client._queue, self.client._pending
        messages: list[bytes] = []
        while waiting:
            request, answer = waiting.popleft()
            self._sequence = self._sequence % 0x7FFFFFFF + 1
            # From here on it may have been sent: it is not sent again after a reconnect.
            pending.append((request, answer, self._sequence))
            body = answer.body if type(answer) is _Answer else request.serialize()
            messages += _REQUEST.pack(8 + len(body), self._sequence, request.type), body
        self._write(b"".join(messages), connect_timeout)

    def _write(self, message: bytes, timeout: float) -> None:
        """Send what the socket takes at once; then wait for it, as the stock client does first."""
        with self._socket_error_handling():
            try:
                sent = self._socket.send(message)
            except _LATER:
                sent = 0
        if sent < len(message):
            super()._write(message[sent:], timeout)

    def _read_socket(self, read_timeout: float) -> Any:
        """Take in everything that has arrived."""
        with self._socket_error_handling():
            try:
                self._received += self._received_now()
            except _LATER:
                return None  # TLS spoke to itself
        closed = super()._read_socket(read_timeout)
        while self._received and not closed:
            closed = super()._read_socket(read_timeout)
        if self.client.is_refused:
            raise kazoo_errors.AuthFailedError
        return closed

    def _read(self, length: int, timeout: float) -> bytes:
        if self._is_opening and not 0 <= length <= _OPENING_BYTES:
            raise ConnectionDropped("what answers is not a ZooKeeper server")
        parts, size = [self._received], len(self._received)
        while size < length:
            parts.append(self._receive(timeout))
            size += len(parts[-1])
        received = b"".join(parts)
        self._received = received[length:]
        return received[:length]

    def _receive(self, timeout: float) -> bytes:
        with self._socket_error_handling():
            while True:
                try:
                    return self._received_now()
                except _LATER as later:
                    wants_write = isinstance(later, ssl.SSLWantWriteError)
                    ends = ([], [self._socket]) if wants_write else ([self._socket], [])
                    if not any(self.handler.select(*ends, [], timeout)):
                        raise self.handler.timeout_exception("time-out during read") from None

    def _received_now(self) -> bytes:
        chunk: bytes = self._socket.recv(CHUNK)
        if not chunk:
            raise ConnectionDropped("the server closed the connection")
        return chunk


class Client(KazooClient):  # type: ignore[misc]
    """One connection to ZooKeeper and, while it lasts, one session. All paths are absolute.

    ``negotiated_timeout_s`` is known before the first request is answered. ``is_refused``: the
    servers do not take the credential, or demand one; the client has ended. ``on_failed`` is called
    on the connection thread.
    """

    def __init__(
        self,
        hosts: str,
        timeout_s: float,
        credential: str = "",
        tls: Tls | None = None,
        on_failed: Callable[[FailedConnection], None] = lambda _: None,
    ) -> None:
        handler = _LoopHandler(tls)
        scheme, _, secret = credential.partition(":")
        is_sasl = scheme == "sasl"
        user, _, password = secret.partition(":")
        self.user = user, password  # for SASL
        super().__init__(
            hosts=hosts,
            timeout=timeout_s,
            # Shown on every new connection, before any request of ours.
            auth_data=[(scheme, secret)] if credential and not is_sasl else None,
            handler=handler,
            connection_retry=KazooRetry(
                max_tries=-1, delay=0.05, max_delay=1.0, sleep_func=handler.sleep_func
            ),
            logger=logging.getLogger("kazoo"),
        )
        self.negotiated_timeout_s = timeout_s
        self.is_refused, self.on_failed = False, on_failed
        self._connection = _Connection(
            self, self._conn_retry.copy(), logger=self.logger, sasl_options={} if is_sasl else None
        )

    def _session_callback(self, state: Any) -> None:
        if state == KeeperState.AUTH_FAILED:
            self.is_refused = True  # before the listeners hear that the session is lost
        super()._session_callback(state)

    def submit(
        self,
        request: Any,
        body: bytes,
        session_id: int,
        done: Callable[[Any, Exception | None], None],
    ) -> None:
        """Send ``request`` in this session; ``done(answer, error)`` is called on any thread.

        ``body`` is the request as ``wire.serialize`` returned it, so it can be sent.

        kazoo may report a request twice when the client is closed meanwhile: the first counts.
        """
        if self._session_id != session_id:  # the caller does not know of the new one yet
            done(None, kazoo_errors.SessionExpiredError())
            return
        self._call(request, _Answer(body, done, self._note_refusal))

    def _note_refusal(self) -> None:
        self.is_refused = True  # the connection thread ends the client

    def doubt(self, session_id: int) -> None:
        """Connect again: on this connection a server says that the session is over.

        Without that the client would keep a connection to a session that is gone.
        """
        if self._session_id == session_id and self._state == KeeperState.CONNECTED:
            self.logger.warning("The session is over, but its connection stands: connecting again")
            self.drop_connection()

    def drop_connection(self) -> None:
        """Break the connection, but not the session; kazoo reconnects."""
        try:
            # Not a TLS socket's own: that one takes what still comes for data in clear.
            socket.socket.shutdown(self._connection._socket, socket.SHUT_RDWR)
        except (OSError, TypeError, AttributeError):
            return  # there is none
