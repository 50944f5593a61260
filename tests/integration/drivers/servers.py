"""Servers as data sources find them: by TCP, with passwords and certificates."""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from shoal.core.data_sources import DataSource, Option
from shoal.proto.tls import TlsFiles, create_identity
from tests.support.database import mariadb, postgresql

PASSWORD = "pa'ss wörd"
_HBA = """
local   all all trust
hostssl all trusted_by_tls 127.0.0.1/32 scram-sha-256
hostnossl all trusted_by_tls 127.0.0.1/32 reject
host    all all 127.0.0.1/32 scram-sha-256
"""


@dataclass(frozen=True)
class Served:
    """A server that tests may do anything to. ``source`` signs in as a plain user."""

    source: DataSource
    asked: Callable[[str], list[tuple[Any, ...]]]  # runs a statement as administrator
    ca: str  # the certificate of who signed the server's, PEM
    administrator: str = ""  # the URL by which PostgreSQL's signs in

    def sourced(self, **changed: Any) -> DataSource:
        """Return the data source with other fields."""
        return replace(self.source, **changed)

    def with_options(self, **options: Option) -> DataSource:
        return self.sourced(options=options)


@contextmanager
def postgresql_served() -> Iterator[Served]:
    port = free_port()
    with _certificates(postgresql.USER) as (folder, tls):
        hba = folder / "pg_hba.conf"
        hba.write_text(_HBA)
        settings = (
            "listen_addresses=127.0.0.1",
            "ssl=on",
            f"ssl_cert_file={tls.cert}",
            f"ssl_key_file={tls.key}",
            f"hba_file={hba}",
            "fsync=off",
            "max_connections=50",
            "max_prepared_transactions=5",
        )
        with postgresql.temporary_server(settings, port, in_memory=True) as server:
            with psycopg.connect(server.url, autocommit=True) as connection:
                password = PASSWORD.replace("'", "''")
                for user in ("etl", "trusted_by_tls", "stranger"):
                    connection.execute(f"CREATE USER {user} PASSWORD '{password}'")
                connection.execute("CREATE DATABASE warehouse OWNER etl")
            source = DataSource(
                "warehouse",
                "postgresql",
                host="127.0.0.1",
                port=port,
                database="warehouse",
                user="etl",
                password=PASSWORD,
                options={"sslmode": "prefer", "connect_timeout": 30},
            )
            url = server.url_of("warehouse")

            def asked(statement: str) -> list[tuple[Any, ...]]:
                with psycopg.connect(url, autocommit=True) as connection:
                    cursor = connection.execute(statement)
                    return cursor.fetchall() if cursor.description else []

            yield Served(source, asked, tls.ca.read_text(), url)


def free_port() -> int:
    """Return a port of this machine that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def _certificates(user: str) -> Iterator[tuple[Path, TlsFiles]]:
    folder = Path(tempfile.mkdtemp(prefix="shoal-tls-", dir="/tmp"))
    try:
        files = create_identity(folder)
        if os.geteuid() == 0:
            for path in (folder, files.cert, files.key):
                shutil.chown(path, user)
        yield folder, files
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def mariadb_served() -> Iterator[Served]:
    port = free_port()
    with _certificates(mariadb.USER) as (_, tls):
        options = [f"--ssl-cert={tls.cert}", f"--ssl-key={tls.key}", f"--ssl-ca={tls.ca}"]
        if os.geteuid() == 0:
            shutil.chown(tls.ca, mariadb.USER)
        with mariadb.temporary_server(port, options) as server:
            password = PASSWORD.replace("'", "''")
            server.run(
                f"CREATE USER etl@'127.0.0.1' IDENTIFIED BY '{password}'",
                f"CREATE USER trusted_by_tls@'127.0.0.1' IDENTIFIED BY '{password}' REQUIRE SSL",
                "CREATE DATABASE warehouse CHARACTER SET utf8mb4",
                "GRANT ALL ON warehouse.* TO etl@'127.0.0.1'",
                "GRANT ALL ON warehouse.* TO trusted_by_tls@'127.0.0.1'",
            )
            source = DataSource(
                "warehouse",
                "mariadb",
                host="127.0.0.1",
                port=port,
                database="warehouse",
                user="etl",
                password=PASSWORD,
                options={"tls": "prefer", "connect_timeout": 30, "charset": "utf8mb4"},
            )
            yield Served(source, lambda statement: server.run(statement), tls.ca.read_text())
