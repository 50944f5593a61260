"""Workflow instances that tests work with, created without a command being carried out."""

from collections.abc import Sequence

from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Run
from shoal.sql import UnitOfWork


async def create(uow: UnitOfWork, new: Sequence[NewInstance]) -> list[Run]:
    """Store instances that have yet to begin; return their runs.

    Raises NotFound for an unknown version, AlreadyExists if a command has an instance already.
    """
    reserved = await uow.new_instances.reserve(new)
    await uow.new_instances.insert(reserved, {})
    return list(reserved.runs)
