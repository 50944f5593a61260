"""Bring a database's schema to the state that this code needs.

The whole upgrade is one transaction. On SQLite its ``BEGIN IMMEDIATE`` keeps the other processes
of the machine waiting, on PostgreSQL an advisory lock does.

Indexes of tables with rows come afterwards on PostgreSQL. ``CREATE INDEX`` locks its table against
writes for as long as it reads the table. So a migration creates an index only while its table is
empty (``may_create_index``) and leaves it out otherwise. After the commit, each start of a process
builds every plain index of the metadata that is missing or invalid, with CREATE INDEX CONCURRENTLY
and outside of a transaction: others read and write meanwhile. A build that was interrupted leaves
an invalid index, which is dropped and built again.

One process builds at a time, under an advisory lock of its session. The others do not wait for it:
without the index queries are slower and nothing is wrong. They must not wait inside a statement in
any case, because a build waits for all older snapshots, and that statement has one. Unique indexes
are part of what is correct, so they belong into the migration's transaction.
"""

from collections.abc import Mapping
from pathlib import Path

import structlog
from sqlalchemy import Connection as SyncConnection
from sqlalchemy import Index, text
from sqlalchemy.schema import CreateIndex

from shoal.sql.driver.connection import Connection
from shoal.sql.errors import DatabaseUnavailable, SchemaTooNew, SchemaTooOld, SqlError
from shoal.sql.schema.examination import find_revision, require_tables
from shoal.sql.schema.tables import metadata

log = structlog.get_logger()

FOLDER = Path(__file__).parents[1] / "migrations"
_LOCK_KEY = 0x53484F414C  # "SHOAL"
BUILD_LOCK_KEY = 0x494E444558  # "INDEX"

_PRESENT = text(
    "SELECT name.relname, one.indisvalid FROM pg_index AS one"
    " JOIN pg_class AS name ON name.oid = one.indexrelid"
    " JOIN pg_namespace AS space ON space.oid = name.relnamespace"
    " WHERE space.nspname = current_schema()"
)


async def upgrade(connection: Connection) -> None:
    """Migrate to the newest revision inside the caller's transaction.

    Raises SchemaTooNew, SchemaTooOld or DatabaseUnsuitable, before anything has changed.
    """
    if connection.dialect == "postgresql":
        # Others wait for as long as a migration takes; a crashed one releases its locks.
        await connection.execute(text("SET LOCAL lock_timeout = 0"))
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_KEY})"))
    await connection.run_sync(_upgrade)


def revisions() -> list[str]:
    """Return the revisions that this code knows, oldest first; each file's name starts with its."""
    return sorted(file.name.partition("_")[0] for file in FOLDER.glob("versions/[0-9]*_*.py"))


def _upgrade(connection: SyncConnection) -> None:
    known = revisions()
    current = find_revision(connection)
    if current == known[-1]:
        require_tables(connection, metadata.tables)
        return
    if current is not None and current not in known:
        # Revisions are numbers of four digits, so their texts have their order.
        raise SchemaTooOld(current, known[0]) if current < known[0] else SchemaTooNew(current)
    from shoal.sql.schema.upgrade import to_head  # large, and hardly ever needed

    to_head(connection, FOLDER)


# -- indexes ------------------------------------------------------------------------------------


def may_create_index(connection: SyncConnection, table: str) -> bool:
    """Whether a migration may create an index of ``table`` in its transaction.

    If not, ``build_indexes`` creates it after the commit.
    """
    if connection.dialect.name != "postgresql":
        return True
    return connection.scalar(text(f"SELECT 1 FROM {table} LIMIT 1")) is None  # noqa: S608 - a migration's


async def build_indexes(connection: Connection) -> None:
    """Build what is missing or invalid; ``connection`` is PostgreSQL's, in no transaction.

    The lock is its session's, so the caller ends that. A build that fails is logged, and the next
    start tries again. Raises DatabaseUnavailable.
    """
    if not await _to_build(connection):
        return
    if not await connection.scalar(text(f"SELECT pg_try_advisory_lock({BUILD_LOCK_KEY})")):
        log.info("another process builds indexes of the database; queries are slower meanwhile")
        return
    # A build waits for all older transactions, for as long as they take.
    await connection.execute(text("SET lock_timeout = 0"))
    for index, is_present in (await _to_build(connection)).items():
        await _build(connection, index, is_present=is_present)


async def _to_build(connection: Connection) -> Mapping[Index, bool]:
    """Return each index to be built, and whether an invalid one has its name."""
    rows = await connection.execute(_PRESENT)
    present = {str(row.relname): bool(row.indisvalid) for row in rows}
    return {
        index: str(index.name) in present
        for table in metadata.sorted_tables
        for index in sorted(table.indexes, key=lambda one: str(one.name))
        if not index.unique and not present.get(str(index.name))
    }


async def _build(connection: Connection, index: Index, *, is_present: bool) -> None:
    name = str(index.name)
    table = index.table.name if index.table is not None else ""
    log.info("building an index; others read and write meanwhile", index=name, table=table)

    def create(within: SyncConnection) -> None:
        statement = str(CreateIndex(index).compile(dialect=within.dialect))
        within.exec_driver_sql(statement.replace("CREATE INDEX", "CREATE INDEX CONCURRENTLY", 1))

    try:
        if is_present:
            await connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {name}"))
        await connection.run_sync(create)
    except DatabaseUnavailable:
        raise
    except SqlError as error:
        log.warning(
            "index not built: queries are slower without it; the next start of a process tries "
            "again",
            index=name,
            table=table,
            error=str(error),
        )
    else:
        log.info("index built", index=name, table=table)
