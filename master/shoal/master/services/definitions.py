"""What starts refer to, read by one statement in a transaction however many they are."""

from collections.abc import Collection, Mapping
from typing import Self

from shoal.core.definition.model import WorkflowSpec
from shoal.sql import UnitOfWork
from shoal.sql.errors import Archived, NotFound
from shoal.sql.repositories.definitions.workflows import Origin


class Definitions:
    """Workflows, their versions and their projects' parameters, as one transaction sees them."""

    def __init__(self, uow: UnitOfWork, origins: Mapping[int, Origin]) -> None:
        self._uow = uow
        self._origins = origins

    @classmethod
    async def of(cls, uow: UnitOfWork, workflow_ids: Collection[int]) -> Self:
        """Read what is known of these workflows; nothing else is asked for later."""
        return cls(uow, await uow.workflows.origins(workflow_ids))

    async def version(self, workflow_id: int, version: int | None) -> tuple[int, WorkflowSpec]:
        """Return a version of a workflow, with its number; None: the newest.

        A deleted workflow has no newest version, but each one can still be had by its number.
        Raises NotFound, Archived.
        """
        origin = self._origins.get(workflow_id)
        if origin is None or (version is None and origin.is_deleted):
            raise NotFound("workflow", f"{workflow_id}")
        self.require_in_use(workflow_id)
        number = origin.version if version is None else version
        return number, await self._uow.workflows.spec(workflow_id, number)

    def require_in_use(self, workflow_id: int) -> None:
        """Raise Archived if nothing of a workflow may start."""
        origin = self._origins.get(workflow_id)
        if origin is not None and origin.is_archived:
            raise Archived(origin.project, origin.name)

    def parameters(self, workflow_id: int) -> Mapping[str, str]:
        """Return the definitions of the parameters of a workflow's project."""
        return self._origins[workflow_id].parameters

    def newest(self, workflow_ids: Collection[int]) -> dict[int, int]:
        """Return the newest versions of workflows, deleted or not, by their ids."""
        return {one: self._origins[one].version for one in workflow_ids}
