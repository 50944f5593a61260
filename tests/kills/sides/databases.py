"""Statements in PostgreSQL and MariaDB, as their administrators see them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import psycopg

from tests.integration.drivers.servers import Served
from tests.kills.plan import MARKER
from tests.kills.sides.side import Sight

_POSTGRESQL = """SELECT query, pid || ' since ' || backend_start FROM pg_stat_activity
    WHERE usename = 'etl' AND state <> 'idle' AND query LIKE '%kill\\_%'"""
_MARIADB = """SELECT info, id FROM information_schema.processlist
    WHERE user = 'etl' AND info LIKE '%kill\\_%'"""


class PostgresqlSide:
    """A job is a session that is in a statement or a transaction."""

    name = "PostgreSQL's sessions"

    def __init__(self, served: Served) -> None:
        self._url = served.administrator
        self._connection: psycopg.Connection[Any] | None = None

    def look(self) -> Sight:
        """See Side."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True)
        return _by_marker(self._connection.execute(_POSTGRESQL).fetchall())

    def close(self) -> None:
        """Close the connection. Call it when nobody looks any more."""
        if self._connection is not None:
            self._connection.close()


class MariadbSide:
    """A job is a connection that is in a statement, also in one of a routine."""

    name = "MariaDB's connections"

    def __init__(self, served: Served) -> None:
        self._served = served

    def look(self) -> Sight:
        """See Side."""
        return _by_marker(self._served.asked(_MARIADB))


def _by_marker(rows: Iterable[tuple[Any, ...]]) -> Sight:
    found: dict[str, set[str]] = defaultdict(set)
    for text, job in rows:
        if marker := MARKER.search(text):
            found[marker[0]].add(str(job))
    return {marker: frozenset(live) for marker, live in found.items()}
