"""Bring a database's schema to the state that this code needs.

The whole upgrade is one transaction. On SQLite its ``BEGIN IMMEDIATE`` keeps the other processes
of the machine waiting, on PostgreSQL an advisory lock does.
"""

from pathlib import Path

from sqlalchemy import Connection as SyncConnection
from sqlalchemy import text

from shoal.sql.driver.connection import Connection
from shoal.sql.errors import SchemaTooNew, SchemaTooOld
from shoal.sql.schema.examination import find_revision, require_tables
from shoal.sql.schema.tables import metadata

FOLDER = Path(__file__).parents[1] / "migrations"
_LOCK_KEY = 0x53484F414C  # "SHOAL"


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
