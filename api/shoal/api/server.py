"""The HTTP server: its socket, its certificate, and uvicorn with the API's limits."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from shoal.api.settings import ApiSettings
from shoal.api.web.connections import HEAD_S, Connections
from shoal.api.web.errors import (
    AddressInUse,
    BadCertificate,
    ClearBeyondLoopback,
    NoAllowedHosts,
    NotAnAddress,
)
from shoal.api.web.tls_handshake import TlsHandshake

BACKLOG = 512  # connections that wait to be accepted
# Of a connection between two requests. Longer than HTTP clients keep theirs, usually 5 s: else a
# request may meet a connection that is just being closed.
KEEP_ALIVE_S = 30
# Of a TLS connection that is being closed. ``Connections.expire`` ends it much earlier, but not
# while the client reads; asyncio would.
_TLS_END_S = 3600.0
_DATE_PERIOD_S = 1.0  # dates in HTTP have seconds


class Server(uvicorn.Server):
    """A server that leaves the process's signals alone; ``serve`` above handles them."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections
        self._up, self._told_to_stop = asyncio.Event(), asyncio.Event()

    def stop(self) -> None:
        """End what ``serve`` does."""
        self.should_exit = True
        self._told_to_stop.set()

    async def main_loop(self) -> None:
        """Renew the date in the headers and end late connections until stopped.

        uvicorn's own loop wakes up ten times a second to look whether it is to stop.
        """
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(_DATE_PERIOD_S):
                    await self._told_to_stop.wait()
            self._connections.expire(asyncio.get_running_loop().time())

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, and let it be known.

        uvicorn's own startup leaves a client 60 s for the handshake of TLS.
        """
        assert sockets is not None, "serve() is called with them"
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise SystemExit(STARTUP_FAILURE)
        config = self.config
        protocol = partial(
            self._connections.protocol,
            config=config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        context = config.ssl

        def counted() -> asyncio.BaseProtocol:
            if context is None:
                return protocol()
            return TlsHandshake(
                self._connections, protocol(), context, handshake_s=HEAD_S, end_s=_TLS_END_S
            )

        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(counted, sock=one, backlog=config.backlog) for one in sockets
        ]
        self.started = True
        self._up.set()

    async def has_started(self, serving: asyncio.Task[None]) -> None:
        """Return when connections are accepted, or when ``serving`` is over without that."""
        up = asyncio.create_task(self._up.wait())
        await asyncio.wait({up, serving}, return_when=asyncio.FIRST_COMPLETED)
        up.cancel()
        if serving.done():
            serving.result()


def check_certificate(settings: ApiSettings) -> None:
    """Return if the certificate can be used, or there is none. Raises BadCertificate."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    except OSError as error:  # ssl's own errors are, too
        reason = error.strerror or str(error)
        raise BadCertificate(settings.tls_certificate, settings.tls_key, reason) from error


@contextmanager
def listening(settings: ApiSettings) -> Iterator[socket.socket]:
    """Bind first of all: a taken port is reported before anything else is started."""
    host = "127.0.0.1" if settings.host == "localhost" else settings.host
    try:
        address = ip_address(host)
    except ValueError:
        raise NotAnAddress(settings.host) from None
    if not address.is_loopback:
        if not (settings.has_tls or settings.allow_clear):
            raise ClearBeyondLoopback(host)
        if not settings.allowed_hosts:
            raise NoAllowedHosts(host)
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    # asyncio switches Nagle's delays off only for sockets that name their protocol.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, settings.port))
            listener.listen(BACKLOG)
        except OSError as error:
            raise AddressInUse(host, settings.port, error.strerror or str(error)) from error
        yield listener
