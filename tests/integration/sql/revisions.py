"""Databases as earlier versions of Shoal have left them."""

from alembic import command as alembic
from alembic.config import Config
from sqlalchemy import Connection, text

from shoal.sql import Database
from shoal.sql.schema.migrate import FOLDER


def upgrade_to(connection: Connection, revision: str) -> None:
    """Bring the schema to a revision."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes["connection"] = connection
    alembic.upgrade(config, revision)


async def execute(url: str, statement: str) -> None:
    """Do one statement, as an earlier version would: its tables have other columns."""
    async with Database(url) as database, database.unit_of_work() as uow:
        await uow.connection.execute(text(statement))
        await uow.commit()


async def make(url: str, revision: str) -> None:
    """Make a database of a revision."""
    async with Database(url) as database, database.unit_of_work() as uow:
        await uow.connection.run_sync(lambda connection: upgrade_to(connection, revision))
        await uow.commit()
