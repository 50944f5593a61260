"""The number that a server's turn at a job has in the database."""

from typing import Protocol

import structlog

from shoal.sql import Database
from shoal.sql.errors import JobTaken

log = structlog.get_logger()


class Jobs(Protocol):
    """Who knows which jobs are ours: ``BalancedJobs``."""

    async def confirmed(self, job: str) -> int | None:
        """Return the epoch of a job if it is ours at this moment."""


async def epoch_in_database(database: Database, jobs: Jobs, job: str, epoch: int) -> int:
    """Return the epoch to write with. Raises JobTaken, SqlError, CoordinationError.

    It is ``epoch``, unless a greater one is stored. After ZooKeeper lost its data, creation numbers
    begin anew, below what is stored. While our owner node stands, no other in the present tree can
    have had a greater one, so it is older history, and ours is one more. Of two servers that think
    so one writes it, and the other is refused.
    """
    async with database.unit_of_work(read_only=True) as uow:
        stored = await uow.alert_jobs.epoch(job)  # read before the node is
    if stored is None or stored <= epoch:
        return epoch
    if await jobs.confirmed(job) != epoch:
        raise JobTaken(job, epoch)
    async with database.unit_of_work() as uow:
        superseding = await uow.alert_jobs.supersede(job, stored)
        await uow.commit()
    log.warning("epoch of a lost ZooKeeper tree superseded", job=job, epoch=superseding)
    return superseding
