"""TLS connections count from their first moment, before the handshake.

asyncio shows a TLS connection to its protocol only after the handshake. Until then nothing would
count it: a client that opens connections and never finishes a handshake could take all file
descriptors of the process. So the handshake is a connection as any other for `Connections`. It is
one without a request, which is closed first if its address, or the process, needs room.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from typing import cast

from uvicorn.protocols.utils import get_remote_addr

from shoal.api.web.connections import BoundedProtocol, Connections


class TlsHandshake(SSLProtocol):
    """The TLS layer of one connection; it hands over to ``protocol`` after the handshake.

    ``handshake_s``: seconds for the whole handshake. ``end_s``: seconds for the client to confirm
    the end of the connection.
    """

    # Of asyncio's buffer, which each connection keeps for its whole life. A TLS record has 16 KiB.
    max_size = 32 * 1024

    is_unused = is_idle = True

    def __init__(
        self,
        connections: Connections,
        protocol: BoundedProtocol,
        context: ssl.SSLContext,
        *,
        handshake_s: float,
        end_s: float,
    ) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            protocol,
            context,
            None,  # type: ignore[arg-type] # no coroutine waits for the handshake
            server_side=True,
            ssl_handshake_timeout=handshake_s,  # type: ignore[arg-type] # a float is fine
            ssl_shutdown_timeout=end_s,
        )
        protocol.handshake = self
        self._counted_in, self._peer = connections, ""
        self._below: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection and begin the handshake, or close the connection.

        Of those for which there is no room a few may finish their handshake: the answer to a
        request says why they are refused.
        """
        # No check with isinstance: the transports of uvloop have another base class.
        below = cast(asyncio.Transport, transport)
        client = get_remote_addr(below)
        self._below, self._peer = below, client[0] if client else ""
        connections = self._counted_in
        if connections.admit(self, self._peer) or connections.admit_refusal(self):
            super().connection_made(below)
        else:
            below.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection."""
        self._counted_in.drop(self, self._peer)
        self._counted_in.drop_refusal(self)
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close it in favour of another one."""
        self._counted_in.drop(self, self._peer)
        if self._below is not None:
            self._below.abort()

    def expire(self, now_s: float) -> None:
        """Do nothing: asyncio ends a handshake that takes longer than ``handshake_s``."""
