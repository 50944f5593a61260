"""Bring a database's schema to the state that this code needs.

The whole upgrade is one transaction. On SQLite its ``BEGIN IMMEDIATE`` keeps the other processes
of the machine waiting, on PostgreSQL an advisory lock does.
"""

from pathlib import Path

from sqlalchemy import Connection as SyncConnection
from sqlalchemy import column, inspect, select, table, text

from shoal.sql.driver.connection import Connection
from shoal.sql.errors import SchemaTooNew, SchemaTooOld

VERSION_TABLE = "shoal_revision"
_VERSIONS = table(VERSION_TABLE)
FOLDER = Path(__file__).parents[1] / "migrations"
_LOCK_KEY = 0x53484F414C  # "SHOAL"


async def upgrade(connection: Connection) -> None:
    """Migrate to the newest revision inside the caller's transaction.

    Raises SchemaTooNew or SchemaTooOld, before anything has changed.
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
    current = _current(connection)
    if current == known[-1]:
        return
    if current is not None and current not in known:
        # Revisions are numbers of four digits, so their texts have their order.
        raise SchemaTooOld(current, known[0]) if current < known[0] else SchemaTooNew(current)
    from shoal.sql.schema.upgrade import to_head  # large, and hardly ever needed

    to_head(connection, FOLDER)


def _current(connection: SyncConnection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.scalar(select(column("version_num")).select_from(_VERSIONS))
    return found
