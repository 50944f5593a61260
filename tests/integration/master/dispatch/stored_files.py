"""Files of the resource center, stored as an upload stores them."""

import hashlib
from datetime import datetime

from sqlalchemy import text

from shoal.runtime.storage import Storage
from shoal.sql import Database


async def put(
    database: Database,
    path: str,
    content: str,
    at: datetime,
    storage: Storage | None = None,
    project: str = "default",
) -> str:
    """Store a version of a file; return its object."""
    async with database.unit_of_work() as uow:
        name = Storage.new_name(project, await uow.cluster.uid())
        await uow.commit()
    if storage is not None:
        with storage.writing(name) as file:
            file.write(content.encode())
    digest = hashlib.sha256(content.encode()).hexdigest()
    async with database.unit_of_work() as uow:
        upload = await uow.resources.begin(project, path, name, at)
        await uow.resources.complete(upload, digest, len(content), at, most=1 << 30)
        await uow.commit()
    return name


async def rows(database: Database) -> int:
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.connection.execute(text("SELECT count(*) FROM resource"))
        return int(found.scalar_one())
