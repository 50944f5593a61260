"""Statements in databases: SQL and PROCEDURE on servers, SQL on files.

Each job writes a row about itself and takes its time, in one transaction.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

import duckdb

from shoal.core.data_sources import DataSource
from tests.chaos.workload.rest import Api
from tests.integration.drivers.servers import Served, mariadb_served, postgresql_served
from tests.kills.kinds.kind import Kind
from tests.kills.kinds.sources import put_source
from tests.kills.plan import Case
from tests.kills.sides.databases import MariadbSide, PostgresqlSide
from tests.kills.sides.side import Side

_COUNT = "SELECT count(*) FROM warehouse.effects WHERE marker = '{marker}'"


class _Server(Kind):
    """A kind whose jobs run in a database server. Kinds on one server may have one each."""

    bounds_cancel = declares = True
    start: Callable[[], AbstractContextManager[Served]]
    side: Callable[[Served], Side]
    tables: tuple[str, ...]
    count = _COUNT

    async def serve(self, stack: AsyncExitStack) -> Side:
        """See Kind."""
        self.served = stack.enter_context(type(self).start())
        for statement in self.tables:
            self.served.asked(statement)
        self.source = replace(self.served.source, name=self.name.lower())
        return type(self).side(self.served)

    def sources(self) -> Sequence[DataSource]:
        """See Kind."""
        return [self.source]

    def effects(self, case: Case) -> int:
        """See Kind."""
        return int(self.served.asked(self.count.format(marker=case.marker))[0][0])


class Postgresql(_Server):
    """A SQL task on PostgreSQL."""

    name, label = "POSTGRESQL", "SQL, PostgreSQL"
    start = postgresql_served
    side: Callable[[Served], Side] = PostgresqlSide
    tables: tuple[str, ...] = (
        "CREATE TABLE effects (marker text)",
        "GRANT ALL ON effects TO etl",
    )
    count = _COUNT.replace("warehouse.", "")
    wait = "SELECT pg_sleep({seconds}), '{marker}'"

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        wait = self.wait.format(seconds=case.seconds, marker=case.marker)
        sql = f"INSERT INTO effects VALUES ('{case.marker}');\n{wait}"
        params = {"data_source": self.source.name, "sql": sql, "idempotent": case.idempotent}
        return {"type": "SQL", "params": params}


class Mariadb(Postgresql):
    """A SQL task on MariaDB."""

    name, label = "MARIADB", "SQL, MariaDB"
    start, side = mariadb_served, MariadbSide
    tables = ("CREATE TABLE warehouse.effects (marker varchar(40)) ENGINE=InnoDB",)
    count = _COUNT
    wait = "SELECT SLEEP({seconds}), '{marker}'"


class PostgresqlProcedure(Postgresql):
    """A PROCEDURE task on PostgreSQL. A stubborn one catches its cancellation."""

    name, label = "PGPROCEDURE", "PROCEDURE, PostgreSQL"
    swallows = True
    wait_in = "BEGIN PERFORM pg_sleep(0.2); {caught} END;"
    caught = "EXCEPTION WHEN query_canceled THEN NULL;"

    def prepare(self, case: Case) -> None:
        """See Kind."""
        wait = self.wait_in.format(caught=self.caught if case.stubborn else "")
        self.served.asked(
            f"""CREATE PROCEDURE {case.marker}() LANGUAGE plpgsql AS $$
            DECLARE until timestamptz := clock_timestamp() + interval '{case.seconds} seconds';
            BEGIN
                INSERT INTO effects VALUES ('{case.marker}');
                WHILE clock_timestamp() < until LOOP {wait} END LOOP;
            END $$"""
        )

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        name = case.marker
        params = {"data_source": self.source.name, "name": name, "idempotent": case.idempotent}
        return {"type": "PROCEDURE", "params": params}


class MariadbProcedure(PostgresqlProcedure):
    """A PROCEDURE task on MariaDB. A stubborn one goes on after every error.

    It sleeps by SET: a DO takes the cancellation for a failure of its own, and ignores that.
    """

    name, label = "MYPROCEDURE", "PROCEDURE, MariaDB"
    start, side = mariadb_served, MariadbSide
    tables, count = Mariadb.tables, _COUNT

    def prepare(self, case: Case) -> None:
        """See Kind."""
        caught = "DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;" if case.stubborn else ""
        self.served.asked(
            f"""CREATE PROCEDURE warehouse.{case.marker}() SQL SECURITY INVOKER
            BEGIN
                DECLARE slept INT;
                DECLARE until DATETIME(3) DEFAULT SYSDATE(3) + INTERVAL {case.seconds} SECOND;
                {caught}
                INSERT INTO warehouse.effects VALUES ('{case.marker}');
                WHILE SYSDATE(3) < until DO
                    SET slept = SLEEP(0.2 + 0 * LENGTH('{case.marker}'));
                END WHILE;
            END"""
        )


class Quality(Postgresql):
    """A DATA_QUALITY task on PostgreSQL: its rules are queries, so it has no effect to count."""

    name, label = "QUALITY", "DATA_QUALITY, PostgreSQL"
    counts = declares = False

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        sql = f"SELECT count(*) FROM (SELECT pg_sleep({case.seconds}), '{case.marker}') AS w"
        check = {"check": "value", "sql": sql, "min": 1, "max": 1}
        params = {"data_source": self.source.name, "table": "effects", "checks": [check]}
        return {"type": "DATA_QUALITY", "params": params}


class Sqlite(Kind):
    """A SQL task on a file of SQLite, each case its own."""

    name, label = "SQLITE", "SQL, SQLite"
    launch_s = 1.0
    bounds_cancel = declares = True
    kind = "sqlite"
    suffix = "db"
    wait = """WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT {steps})
        SELECT count(*) FROM n"""
    steps_of_second = 400_000

    async def prepare_all(self, api: Api, case: Case) -> None:
        """See Kind."""
        await super().prepare_all(api, case)
        await put_source(api, DataSource(case.marker, self.kind, database=self.file(case)))

    def file(self, case: Case) -> str:
        return str(self.folder / f"{case.marker}.{self.suffix}")

    def prepare(self, case: Case) -> None:
        """See Kind."""
        with self.opened(case) as connection:
            connection.execute("CREATE TABLE effects (marker text)")

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        wait = self.wait.format(steps=int(case.seconds * self.steps_of_second))
        sql = f"INSERT INTO effects VALUES ('{case.marker}');\n{wait}"
        params = {"data_source": case.marker, "sql": sql, "idempotent": case.idempotent}
        return {"type": "SQL", "params": params}

    def effects(self, case: Case) -> int:
        """See Kind."""
        with self.opened(case) as connection:
            return int(connection.execute("SELECT count(*) FROM effects").fetchone()[0])

    @contextmanager
    def opened(self, case: Case) -> Iterator[Any]:
        """Open the case's file, as nobody of Shoal does."""
        with closing(
            sqlite3.connect(self.file(case), timeout=30, isolation_level=None)
        ) as connection:
            yield connection


class Duckdb(Sqlite):
    """A SQL task on a file of DuckDB, each case its own."""

    name, label = "DUCKDB", "SQL, DuckDB"
    kind = "duckdb"
    suffix = "duckdb"
    wait = "SELECT sum(a.range * b.range) FROM range({steps}) a, range(10000) b"
    steps_of_second = 3_000

    @contextmanager
    def opened(self, case: Case) -> Iterator[Any]:
        """Open the case's file, as nobody of Shoal does."""
        with closing(duckdb.connect(self.file(case))) as connection:
            yield connection
