"""Connections of HTTP clients: how long each may take, and how many an address may have.

A client that does not send, does not read or opens connection after connection must not cost the
others anything. So each connection has a deadline for what it waits for:

===================  =====================================================================
waits for            deadline
===================  =====================================================================
the head             ``HEAD_S`` after the connection, or after the first byte of a request
the body             ``BODY_S``, and a second more for each ``BYTES_PER_S`` received
the client to read   ``WRITE_S`` after the connection stopped taking what is sent, and a second
                     more for each ``BYTES_PER_S`` that the client has taken since
the next request     uvicorn's ``timeout_keep_alive``
===================  =====================================================================

A TLS connection is counted from its first byte, before its handshake: see ``tls_handshake``.

The time in which the server itself works on a request counts for none of them. Deadlines are
checked once a second for all connections (``Connections.expire``), which costs a request nothing.

An address that has as many connections as it may have loses the oldest one that waits for a
request, so that idle connections cannot keep out new ones. Many clients may have one address, that
of their router. A new connection is refused only if all others are at work.
"""

import asyncio
import fcntl
import struct
import termios
from collections.abc import Collection, Container
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shoal.runtime.limits.descriptors import descriptor_limit

if TYPE_CHECKING:
    from shoal.api.web.tls_handshake import TlsHandshake

log = structlog.get_logger()

HEAD_S, BODY_S, WRITE_S = 10.0, 60.0, 60.0
BYTES_PER_S = 1024  # of a client that is slow, not silent
MOST_UNREAD_BYTES = 64 * 1024  # a token and the usual headers are far below
RESERVED_DESCRIPTORS = 256  # for the database, ZooKeeper, workers and files
LEAST_CONNECTIONS = 64  # where the system allows hardly more descriptors than those
MOST_REFUSALS = 32  # TLS connections beyond the limits that may finish their handshake to get a 429
_RETRY_AFTER_S = 5
_LOG_EVERY_S = 60.0


@dataclass(frozen=True)
class Networks:
    """Addresses and networks, such as ``10.0.0.0/8``; ``*`` stands for all."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    is_all: bool = False

    @classmethod
    def of(cls, words: Collection[str]) -> "Networks":
        """Return the networks that ``words`` name. Names of hosts are none, as for uvicorn."""
        networks = []
        for word in words:
            with suppress(ValueError):
                networks.append(ip_network(word, strict=False))
        return cls(tuple(networks), "*" in words)

    def __contains__(self, address: object) -> bool:
        """Whether an address, as text, belongs to one of them."""
        try:
            found = ip_address(str(address))
        except ValueError:
            return self.is_all
        return self.is_all or any(found in network for network in self.networks)


Counted: TypeAlias = "BoundedProtocol | TlsHandshake"


@dataclass
class Connections:
    """All connections of one server. One event loop.

    ``proxies`` are addresses that many clients share by design: only ``total`` holds for them.
    """

    per_address: int
    proxies: Container[str] = ()
    total: int = field(
        default_factory=lambda: max(LEAST_CONNECTIONS, descriptor_limit() - RESERVED_DESCRIPTORS)
    )

    def __post_init__(self) -> None:
        self._of: dict[str, dict[Counted, None]] = {}  # by address, the oldest first
        self._refusals: set[TlsHandshake] = set()
        self._count = 0
        self._logged_s = -inf

    def __len__(self) -> int:
        return self._count

    def protocol(self, **given: Any) -> "BoundedProtocol":
        """Return the protocol of a new connection, as uvicorn asks for it."""
        return BoundedProtocol(self, **given)

    def admit(self, connection: Counted, address: str) -> bool:
        """Count a connection. Return whether there is room for it; make room if possible."""
        own = self._of.get(address, {})
        is_full = address not in self.proxies and len(own) >= self.per_address
        if is_full and not self._close_idle(own):
            self._refused(address, len(own))
            return False
        if self._count >= self.total and not self._close_idle_of_any():
            self._refused(address, len(own))
            return False
        self._of.setdefault(address, {})[connection] = None
        self._count += 1
        return True

    def admit_refusal(self, handshake: "TlsHandshake") -> bool:
        """Return whether a connection that was not admitted may still be told so, in TLS."""
        if len(self._refusals) >= MOST_REFUSALS:
            return False
        self._refusals.add(handshake)
        return True

    def drop_refusal(self, handshake: "TlsHandshake") -> None:
        """Forget a connection that has been refused."""
        self._refusals.discard(handshake)

    def drop(self, connection: Counted, address: str) -> None:
        """Forget a connection that is over or is being closed."""
        own = self._of.get(address, {})
        if connection in own:
            del own[connection]
            self._count -= 1
            if not own:
                del self._of[address]

    def expire(self, now_s: float) -> None:
        """Close the connections whose deadline is over. ``now_s`` is the event loop's time."""
        for connections in list(self._of.values()):
            for connection in list(connections):
                connection.expire(now_s)

    def _close_idle_of_any(self) -> bool:
        """Close one of the address that has most, if none of it is idle of the next, and so on."""
        by_size = sorted(self._of.values(), key=len, reverse=True)
        return any(self._close_idle(connections) for connections in by_size)

    @staticmethod
    def _close_idle(connections: dict[Counted, None]) -> bool:
        """Close the oldest connection without a request, of two the one that never had any."""
        idle = None
        for one in connections:
            if one.is_unused:
                idle = one
                break
            if idle is None and one.is_idle:
                idle = one
        if idle is None:
            return False
        idle.give_up()
        return True

    def _refused(self, address: str, count: int) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._logged_s >= _LOG_EVERY_S:
            self._logged_s = now_s
            log.warning(
                "connection refused", address=address, of_address=count, connections=self._count
            )


def _kernel_bytes(socket: Any) -> int:
    """Return how many bytes of a TCP connection its peer has not confirmed so far; tcp(7)."""
    try:
        found: int = struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
    except (OSError, ValueError):  # closed
        return 0
    return found


class BoundedProtocol(HttpToolsProtocol):
    """One connection within the limits of its server's ``connections``.

    It is also closed if the client sends header lines without end: the parser keeps header lines
    and trailers until the memory is full, before the token is checked. The size of a body has a
    separate limit: see ``web/body.py``.
    """

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._all = connections
        self._address = ""
        self.handshake: TlsHandshake | None = None  # of a TLS connection
        self._deadline_s = inf  # for what is read
        self._write_deadline_s = inf
        self._untaken_bytes = 0  # of what was sent, at the last look
        self._is_in_body = False
        self._unread_bytes = 0  # since the last head, piece of a body, or end of a message

    # -- from the registry -------------------------------------------------------------------

    @property
    def is_unused(self) -> bool:
        """Whether it has not had a request so far."""
        return cast("Any", self.cycle) is None

    @property
    def is_idle(self) -> bool:
        """Whether no request is being received or answered."""
        return self.is_unused or (
            self.cycle.response_complete and self._deadline_s == inf and not self._queued_bytes()
        )

    def give_up(self) -> None:
        """Close it in favour of another one."""
        self._all.drop(self, self._address)
        self.transport.abort()

    def expire(self, now_s: float) -> None:
        """Close it if a deadline is over."""
        is_closing = self.transport.is_closing()  # it goes when the client has read what was sent
        if self._queued_bytes() and (self.flow.write_paused or is_closing or self._is_answered):
            self._await_reads(now_s)
        elif is_closing:  # TLS: the client has to confirm the end
            self._write_deadline_s = min(self._write_deadline_s, now_s + HEAD_S)
        elif not self.flow.write_paused:
            self._write_deadline_s = inf
        if now_s >= self._write_deadline_s:
            self.give_up()
        elif is_closing:
            pass
        elif now_s >= self._deadline_s:
            if self.flow.read_paused:  # by us: what has arrived is not worked off yet
                self._deadline_s = now_s + BODY_S
            elif self._is_in_body and self.cycle.response_started:
                self.give_up()
            else:
                what = "body" if self._is_in_body else "head"
                self._end(HTTPStatus.REQUEST_TIMEOUT, f"The {what} of the request took too long.")

    # -- what is sent ------------------------------------------------------------------------

    @property
    def _is_answered(self) -> bool:
        return not self.is_unused and bool(self.cycle.response_complete)

    def _queued_bytes(self) -> int:
        """Return how much the kernel has not taken so far of what was sent."""
        queued = self.transport.get_write_buffer_size()
        # With TLS that is only what waits for encryption. The rest is in the transport below, which
        # asyncio does not show.
        below = getattr(getattr(self.transport, "_ssl_protocol", None), "_transport", None)
        return queued if below is None else queued + cast(int, below.get_write_buffer_size())

    def _await_reads(self, now_s: float) -> None:
        """Begin to wait for the client to read; wait longer for one that reads slowly."""
        untaken = self._queued_bytes() + _kernel_bytes(self.transport.get_extra_info("socket"))
        if self._write_deadline_s == inf:
            self._write_deadline_s = now_s + WRITE_S
        else:
            taken = max(0, self._untaken_bytes - untaken)
            later_s = self._write_deadline_s + taken / BYTES_PER_S
            self._write_deadline_s = min(later_s, max(self._write_deadline_s, now_s + WRITE_S))
        self._untaken_bytes = untaken

    # -- from the transport ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection in, or refuse it."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._await_head()
        if self.handshake is not None:
            self._all.drop(self.handshake, self._address)  # which makes room for this
        if not self._all.admit(self, self._address):
            self._end(
                HTTPStatus.TOO_MANY_REQUESTS,
                "Too many connections from this address; close some, or try again later.",
                retry_after_s=_RETRY_AFTER_S,
            )
            self.loop.call_later(HEAD_S, self.transport.abort)  # ``expire`` does not know it
        elif self.handshake is not None:  # room was found during the handshake
            self._all.drop_refusal(self.handshake)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._all.drop(self, self._address)
        self._deadline_s = self._write_deadline_s = inf
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in what has arrived."""
        if self.transport.is_closing():
            return
        self._unread_bytes += len(data)
        if self._deadline_s == inf and self.is_idle:
            self._await_head()
        super().data_received(data)
        if self._unread_bytes > MOST_UNREAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def pause_writing(self) -> None:
        """The client does not read what it is sent, or slowly."""
        super().pause_writing()
        self._write_deadline_s = inf
        self._await_reads(self.loop.time())

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._write_deadline_s = inf

    # -- from the parser ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Wait for the head, also that of a request behind another one."""
        if not self.flow.write_paused:  # the answer before it was read
            self._write_deadline_s = inf
        if self._deadline_s == inf:
            self._await_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        self._unread_bytes = 0
        self._is_in_body = True
        self._deadline_s = self.loop.time() + BODY_S
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Give more time for what has arrived."""
        self._unread_bytes = 0
        self._deadline_s += len(body) / BYTES_PER_S
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for nothing: it is the server's turn."""
        self._unread_bytes = 0
        self._is_in_body = False
        self._deadline_s = inf
        super().on_message_complete()

    def _await_head(self) -> None:
        self._is_in_body = False
        self._deadline_s = self.loop.time() + HEAD_S

    def _end(self, status: HTTPStatus, text: str, retry_after_s: int | None = None) -> None:
        """Answer, whatever is asked, and close. A client that has sent nothing gets no answer."""
        is_silent = status is HTTPStatus.REQUEST_TIMEOUT and self._unread_bytes == 0
        if not is_silent or self._is_in_body:
            lines = [
                f"HTTP/1.1 {status.value} {status.phrase}",
                "Content-Type: text/plain; charset=utf-8",
                f"Content-Length: {len(text)}",
                "Connection: close",
            ]
            if retry_after_s is not None:
                lines.append(f"Retry-After: {retry_after_s}")
            self.transport.write("\r\n".join([*lines, "", text]).encode("ascii"))
        self.transport.close()
