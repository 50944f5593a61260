"""Starting before the database does: wait for it, and say so once."""

import asyncio

import structlog

from shoal.sql.engine import Database
from shoal.sql.errors import DatabaseRefused, DatabaseUnavailable

log = structlog.get_logger()

PAUSE_S = 1.0  # between two tries


async def migrate_when_there(database: Database) -> None:
    """Do what ``Database.migrate`` does as soon as the database answers.

    What can never work is raised at once: DatabaseRefused (user, password, name), SchemaTooNew,
    SchemaTooOld, a SQLite file that cannot be used. Cancel it to stop waiting.
    """
    waits = False
    while True:
        try:
            await database.migrate()
        except DatabaseRefused:
            raise
        except DatabaseUnavailable as error:
            if database.kind == "sqlite":
                raise
            if not waits:
                log.warning(
                    "waiting for the database; this process goes on as soon as it answers: start "
                    "it, or check the setting `database`",
                    database=database.address,
                    error=str(error),
                )
            waits = True
            await asyncio.sleep(PAUSE_S)
        else:
            if waits:
                log.info("the database answers", database=database.address)
            return
