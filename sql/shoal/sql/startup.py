"""Starting before the database does, or while it restarts: wait for it, and log that once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from shoal.sql.engine import Database
from shoal.sql.errors import DatabaseRefused, DatabaseUnavailable, SqlError, TransactionConflict

log = structlog.get_logger()

T = TypeVar("T")

PAUSE_S = 1.0  # between two tries


async def migrate_when_there(database: Database) -> None:
    """Do what ``Database.migrate`` does as soon as the database answers.

    A database that another process migrates is waited for as well, however long that takes. What
    can never work is raised at once: DatabaseRefused (user, password, name), DatabaseUnsuitable,
    SchemaTooNew, SchemaTooOld, a SQLite file that cannot be used. Cancel it to stop waiting.
    """
    waits = False
    while True:
        try:
            await database.migrate()
        except DatabaseRefused:
            raise
        except TransactionConflict:
            # SQLite's only writer is another process, or PostgreSQL has ended one of two.
            log.warning(
                "waiting for another process, which migrates the database or writes for long; this "
                "process goes on when it has ended",
                database=database.address,
            )
            waits = True
        except DatabaseUnavailable as error:
            if database.kind == "sqlite":
                raise
            if not waits:
                log.warning(
                    "waiting for the database; this process goes on as soon as it answers: start "
                    "it, or check the setting `database_url`",
                    database=database.address,
                    error=str(error),
                )
            waits = True
            await asyncio.sleep(PAUSE_S)
        else:
            if waits:
                log.info("the database answers", database=database.address)
            return


async def when_there(database: Database, do: Callable[[], Awaitable[T]]) -> T:
    """Return what ``do`` returns; call it again after every error that may pass.

    For what a process asks the database between its start and the loops that have retries: a
    server that restarts then must not end it. ``do`` may happen twice. Raises what is not
    retriable. Cancel it to stop waiting.
    """
    waits = False
    while True:
        try:
            found = await do()
        except SqlError as error:
            if not error.retriable:
                raise
            if not waits:
                log.warning(
                    "waiting for the database; this process continues as soon as it answers",
                    database=database.address,
                    error=str(error),
                )
            waits = True
            await asyncio.sleep(PAUSE_S)
        else:
            if waits:
                log.info("the database answers", database=database.address)
            return found
