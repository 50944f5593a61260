"""Connections to MariaDB and MySQL, and why one does not open."""

import socket
import ssl
from typing import Any

import pymysql
from pymysql.charset import charset_by_name
from pymysql.connections import Connection
from pymysql.constants import CR, ER
from pymysql.cursors import SSCursor

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.failures import cannot_connect

_CONNECT_TIMEOUT_S = 10
_PORT = 3306
_KEEPALIVE = (  # the server, or the way to it, is gone after a minute without an answer
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000),
)
_LASTING = {
    ER.ACCESS_DENIED_ERROR: "wrong password, or no such user from this worker's address",
    ER.DBACCESS_DENIED_ERROR: "the user has no right to this database",
    ER.BAD_DB_ERROR: "there is no such database",
    ER.HOST_NOT_PRIVILEGED: "the server accepts no connection from this worker's address",
    CR.CR_SSL_CONNECTION_ERROR: "the server has no TLS; the data source asks for it",
    3159: "the server demands TLS: use the option tls=require or better",
}
_PASSING = {
    ER.CON_COUNT_ERROR: "the server has no connection left",
    ER.TOO_MANY_USER_CONNECTIONS: "the user has no connection left",
    ER.HOST_IS_BLOCKED: "the server has blocked this worker's address after failures: FLUSH HOSTS",
}


class Connector:
    """Opens connections of one data source."""

    def __init__(self, source: DataSource) -> None:
        self._source = source
        self._timeout_s = float(source.options.get("connect_timeout", _CONNECT_TIMEOUT_S))

    def connect(self, program_name: str) -> Connection:
        """Open a connection, each statement a transaction of its own. Raises WorkFailed."""
        source = self._source
        charset = str(source.options.get("charset", "utf8mb4"))
        if charset_by_name(charset) is None:
            raise cannot_connect(source, f"unknown charset {charset!r}", permanent=True)
        opened = self._socket()
        try:
            connection: Connection = Connection(
                host=source.host,
                port=source.port or _PORT,
                user=source.user,
                password=source.password.encode(),
                database=source.database or None,
                charset=charset,
                autocommit=True,
                cursorclass=SSCursor,
                read_timeout=self._timeout_s,  # for signing in
                local_infile=False,  # no server reads the worker's files
                program_name=program_name,
                defer_connect=True,
                **self._tls(),
            )
            connection.connect(opened)
        except (pymysql.MySQLError, OSError, RuntimeError) as error:
            opened.close()
            raise self._refused(error) from error
        # A statement may take as long as it wants. The driver has no public way to say so now.
        connection._read_timeout = None
        return connection

    def _socket(self) -> socket.socket:
        address = (self._source.host, self._source.port or _PORT)
        try:
            opened = socket.create_connection(address, self._timeout_s)
        except (OSError, UnicodeError) as error:
            raise cannot_connect(self._source, self._unreachable(error)) from error
        for level, option, value in _KEEPALIVE:
            opened.setsockopt(level, option, value)
        return opened

    def _unreachable(self, error: Exception) -> str:
        match error:
            case TimeoutError():
                return (
                    f"no answer within {self._timeout_s:g} s: is there a firewall between, or is "
                    "the server overloaded?"
                )
            case ConnectionRefusedError():
                return "no server listens there: is the server running, are host and port right?"
            case socket.gaierror() | UnicodeError():
                return f"there is no such host ({error})"
            case _:
                return str(error)

    def _tls(self) -> dict[str, Any]:
        mode = self._source.options.get("tls", "prefer")
        if mode == "disable":
            return {"ssl_disabled": True}
        if mode == "prefer":
            return {}  # the driver's own way, which verifies nothing
        context = ssl.create_default_context()
        context.check_hostname = mode == "verify-full"
        if mode == "require":
            context.verify_mode = ssl.CERT_NONE
        certificate = self._source.options.get("ca_certificate")
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = mode == "verify-full"
            context.load_verify_locations(cadata=str(certificate))
        return {"ssl": context}

    def _refused(self, error: Exception) -> WorkFailed:
        cause = getattr(error, "original_exception", error)  # the driver packs those of the socket
        if isinstance(cause, ssl.SSLCertVerificationError):
            if "Hostname mismatch" in str(cause) or "IP address mismatch" in str(cause):
                reason = "the server's certificate is for another host"
            else:
                reason = (
                    "the server's certificate is not signed by a trusted authority; give that as "
                    "option ca_certificate"
                )
            return cannot_connect(self._source, f"{reason} ({cause})", permanent=True)
        if isinstance(cause, OSError):
            return cannot_connect(self._source, self._unreachable(cause))
        code = error.args[0] if error.args else None
        text = str(error.args[1]) if len(error.args) > 1 else str(error)
        if "timed out" in text:
            return cannot_connect(self._source, self._unreachable(TimeoutError()))
        if code in _LASTING:
            return cannot_connect(self._source, f"{_LASTING[code]} ({text})", permanent=True)
        reason = f"{_PASSING[code]} ({text})" if code in _PASSING else text
        return cannot_connect(self._source, reason)
