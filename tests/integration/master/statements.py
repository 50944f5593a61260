"""What a database is asked, for tests that hold the number of statements down."""

from sqlalchemy import Connection, event

from shoal.sql import Database


def but_restrictions(statements: list[str]) -> list[str]:
    """Return them without what a master asks once a second: whose the worker groups are."""
    return [one for one in statements if "FROM restriction" not in one]


async def noted_reads(database: Database) -> list[str]:
    """Return the statements of reading transactions from now on, as they come."""
    return await _noted(database, read_only=True)


async def noted_writes(database: Database) -> list[str]:
    """Return the statements of writing transactions from now on, as they come."""
    return await _noted(database, read_only=False)


async def _noted(database: Database, *, read_only: bool) -> list[str]:
    statements: list[str] = []

    def listen(connection: Connection) -> None:
        @event.listens_for(connection.engine, "before_cursor_execute")
        def _note(_: object, __: object, statement: str, *___: object) -> None:
            statements.append(statement)

    async with database.unit_of_work(read_only=read_only) as uow:
        await uow.connection.run_sync(listen)
    return statements
