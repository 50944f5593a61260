"""Bring a database's schema to the state that this code needs.

The whole upgrade is one transaction. On SQLite its ``BEGIN IMMEDIATE`` keeps the other processes
of the machine waiting, on PostgreSQL an advisory lock does.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection as SyncConnection
from sqlalchemy import text

from shoal.sql.connection import Connection
from shoal.sql.errors import SchemaTooNew

VERSION_TABLE = "shoal_revision"
_FOLDER = Path(__file__).parent / "migrations"
_LOCK_KEY = 0x53484F414C  # "SHOAL"


async def upgrade(connection: Connection) -> None:
    """Migrate to the newest revision inside the caller's transaction. Raises SchemaTooNew."""
    if connection.dialect == "postgresql":
        # Others wait for as long as a migration takes; a crashed one releases its locks.
        await connection.execute(text("SET LOCAL lock_timeout = 0"))
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_KEY})"))
    await connection.run_sync(_upgrade)


def config(connection: SyncConnection) -> Config:
    """Return Alembic's configuration for one open connection."""
    made = Config()
    # Not through the ini syntax's interpolation: the path may hold a percent sign.
    made.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    made.set_main_option("path_separator", "newline")
    made.attributes["connection"] = connection
    return made


def _upgrade(connection: SyncConnection) -> None:
    settings = config(connection)
    script = ScriptDirectory.from_config(settings)
    known = {revision.revision for revision in script.walk_revisions()}
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    current = set(context.get_current_heads())
    if unknown := current - known:
        raise SchemaTooNew(", ".join(sorted(unknown)))
    if current != set(script.get_heads()):
        command.upgrade(settings, "head")
