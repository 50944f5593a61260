"""What keeps a server from giving us a session.

A server that refuses a session closes the connection without a word, whatever the reason. So it is
asked again, apart from the session: for its state (the command ``srvr``, which servers answer
unless zoo.cfg says otherwise), for TLS, and whether it closes even connections that ask nothing.
"""

import re
import socket
import ssl
import time
from contextlib import suppress

from shoal.coordination.errors import BadCertificate, Obstacle
from shoal.coordination.session.security.tls import Tls

PROBE_S = 5.0  # for each step of a question
_MOST_BYTES = 4096
_ALERT = b"\x15"  # by which a message of TLS begins that ends a connection
# What OpenSSL says of a server that has looked at our certificate, or has missed it.
_REFUSED = re.compile("ALERT.*(CERTIFICATE|UNKNOWN_CA)", re.I)


def evident(error: BaseException) -> Obstacle | None:
    """Return what the failure of a connection shows by itself; None: the server has to be asked."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return Obstacle.NOTHING_LISTENS
        if isinstance(cause, TimeoutError):
            return Obstacle.SILENT
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Obstacle.UNTRUSTED
        if isinstance(cause, ssl.SSLError) and _REFUSED.search(str(cause)):
            return Obstacle.WANTS_CERTIFICATE
        is_route = isinstance(cause, OSError) and not isinstance(cause, ConnectionError)
        if is_route and not isinstance(cause, ssl.SSLError):
            return Obstacle.UNREACHABLE
        cause = cause.__cause__ or cause.__context__
    return None


def probe(address: tuple[str, int], tls: Tls | None = None, host: str = "") -> Obstacle:
    """Ask a server that has closed our connection or sent something else than an answer. Blocks.

    With ``tls`` it has to prove that it is ``host``.
    """
    try:
        said = _exchange(address, b"srvr", tls, host)
        if b"Mode: read-only" in said:
            return Obstacle.READ_ONLY
        if b"not currently serving" in said:
            return Obstacle.NOT_SERVING
        if b"Zookeeper version" in said or b"not in the whitelist" in said:
            return Obstacle.REFUSES
        if tls is not None:
            said = _exchange(address, b"srvr")
            return Obstacle.NO_TLS if said and said[:1] != _ALERT else Obstacle.REFUSES
        if _speaks_tls(address):
            return Obstacle.TLS
        if said:
            return Obstacle.NO_ZOOKEEPER
        with socket.create_connection(address, PROBE_S) as connection:
            return Obstacle.CLOSES_AT_ONCE if _is_closed(connection) else Obstacle.REFUSES
    except BadCertificate:  # it was good at the start: it may be half renewed
        return Obstacle.REFUSES
    except ConnectionError as error:
        return evident(error) or Obstacle.CLOSES_AT_ONCE
    except OSError as error:
        return evident(error) or Obstacle.REFUSES


def _exchange(
    address: tuple[str, int], question: bytes, tls: Tls | None = None, host: str = ""
) -> bytes:
    """Return what the server says to ``question`` before it closes the connection."""
    said, ends_at = b"", time.monotonic() + PROBE_S
    with socket.create_connection(address, PROBE_S) as plain, suppress(OSError):
        connection = tls.context().wrap_socket(plain, server_hostname=host) if tls else plain
        with connection:
            connection.sendall(question)
            while len(said) < _MOST_BYTES and (left_s := ends_at - time.monotonic()) > 0:
                connection.settimeout(left_s)  # for all of the answer, however slowly it comes
                if not (chunk := connection.recv(_MOST_BYTES)):
                    break
                said += chunk
    return said


def _speaks_tls(address: tuple[str, int]) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is told to it
    with socket.create_connection(address, PROBE_S) as connection:
        try:
            with context.wrap_socket(connection, do_handshake_on_connect=False) as secure:
                secure.do_handshake()
        except ssl.SSLError as error:
            # It answers in TLS, but wants a certificate of ours, or another version.
            return "ALERT" in str(error).upper()
        except OSError:
            return False
    return True


def _is_closed(connection: socket.socket) -> bool:
    """Say whether the other side closes a connection that asks nothing."""
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
