"""Everything relational: the one place that imports SQLAlchemy.

::

    async with Database(url) as database:
        await database.migrate()
        async with database.unit_of_work() as uow:
            await uow.fence({partition: epoch})
            ids = await uow.instances.save(changes, at)
            await uow.commit()
"""

from shoal.sql.driver.patience import Patience
from shoal.sql.engine import Database
from shoal.sql.event_tail import EventTail
from shoal.sql.repositories.definitions.workflows import PublishedVersion, VersionInfo
from shoal.sql.unit_of_work import Recorder, UnitOfWork

__all__ = [
    "Database",
    "EventTail",
    "Patience",
    "PublishedVersion",
    "Recorder",
    "UnitOfWork",
    "VersionInfo",
]
