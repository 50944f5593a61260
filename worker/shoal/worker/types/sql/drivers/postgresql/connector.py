"""Connections to PostgreSQL, and why one does not open."""

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.failures import cannot_connect

Connection = psycopg.Connection[tuple[Any, ...]]
_CONNECT_TIMEOUT_S = 10
_PORT = 5432
_TIMED_OUT = "no answer within {:g} s: is there a firewall between, or is the server overloaded?"
# What a server says of a connection that it refuses, in the words of its messages; it sends no
# codes then that the driver passes on. The rest may pass: it is tried again.
_LASTING = {
    "password authentication failed": "wrong password, or no such user",
    "no password supplied": "the server asks for a password, and the data source has none",
    "role ": "there is no such user",
    "database ": "there is no such database",
    "no pg_hba.conf entry": "the server accepts no connection from this worker in this way "
    "(pg_hba.conf)",
    "server does not support SSL": "the server has no TLS; the data source asks for it",
    "certificate verify failed": "the server's certificate is not signed by a trusted authority; "
    "give the CA's as option ca_certificate",
    "does not match host name": "the server's certificate is for another host",
    "permission denied for database": "the user may not connect to this database",
}
_PASSING = {
    "Connection refused": "no server listens there: is the server running, are host and port "
    "right?",
    "could not translate host name": "there is no such host",
    "Name or service not known": "there is no such host",
    "too many clients": "the server has no connection left",
    "remaining connection slots": "the server has no connection left",
    "starting up": "the server is starting",
    "shutting down": "the server is shutting down",
}


class Connector:
    """Opens connections of one data source. ``close`` removes what it needs on the disk."""

    def __init__(self, source: DataSource) -> None:
        self._source = source
        self._timeout_s = int(source.options.get("connect_timeout", _CONNECT_TIMEOUT_S))
        self._folder: TemporaryDirectory[str] | None = None
        self._tls = self._tls_parameters()

    def connect(self, application_name: str) -> Connection:
        """Open a connection, each statement a transaction of its own. Raises WorkFailed."""
        source = self._source
        try:
            return psycopg.connect(
                host=source.host,
                port=source.port or _PORT,
                dbname=source.database,
                user=source.user,
                password=source.password,
                application_name=application_name,
                connect_timeout=self._timeout_s,
                client_encoding="UTF8",
                # The machine's own files say nothing about who we are.
                passfile="/dev/null",
                gssencmode="disable",
                # The server, or the way to it, is gone after a minute without an answer.
                keepalives=1,
                keepalives_idle=30,
                keepalives_interval=10,
                keepalives_count=3,
                tcp_user_timeout=60_000,
                autocommit=True,
                prepare_threshold=None,
                **self._tls,
            )
        except (psycopg.Error, UnicodeError) as error:
            raise self._refused(error) from error

    def close(self) -> None:
        """Remove what is on the disk; no connection can be opened after that."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _tls_parameters(self) -> dict[str, Any]:
        mode = str(self._source.options.get("sslmode", "prefer"))
        parameters: dict[str, Any] = {"sslmode": mode, "sslcertmode": "disable"}
        if not mode.startswith("verify"):
            return parameters
        certificate = self._source.options.get("ca_certificate")
        if certificate:  # the library takes it from a file alone
            self._folder = TemporaryDirectory(prefix="tls-", dir=Path.cwd())
            file = Path(self._folder.name) / "ca.pem"
            file.write_text(str(certificate), encoding="ascii")
            return {**parameters, "sslrootcert": str(file)}
        trusted = ssl.get_default_verify_paths()
        return {**parameters, "sslrootcert": trusted.cafile or trusted.openssl_cafile}

    def _refused(self, error: Exception) -> WorkFailed:
        text = " ".join(str(error).split())
        if isinstance(error, psycopg.errors.ConnectionTimeout):
            return cannot_connect(self._source, _TIMED_OUT.format(self._timeout_s))
        for advices, permanent in ((_PASSING, False), (_LASTING, True)):
            for said, advice in advices.items():
                if said in text:
                    reason = f"{advice} ({text})"
                    return cannot_connect(self._source, reason, permanent=permanent)
        return cannot_connect(self._source, text)
