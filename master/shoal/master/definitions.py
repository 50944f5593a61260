"""What starts refer to, read once in a transaction however many they are."""

from collections.abc import Mapping

from shoal.core.records import WorkflowVersion
from shoal.sql import UnitOfWork


class Definitions:
    """Versions of workflows and parameters of projects, as one transaction sees them."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self._versions: dict[tuple[int, int | None], WorkflowVersion] = {}
        self._parameters: dict[str, Mapping[str, str]] = {}

    async def version(self, workflow_id: int, version: int | None) -> WorkflowVersion:
        """Return a version of a workflow; None: the newest. Raises NotFound."""
        key = workflow_id, version
        if key not in self._versions:
            self._versions[key] = await self._uow.workflows.version(workflow_id, version)
        return self._versions[key]

    async def parameters(self, project: str) -> Mapping[str, str]:
        """Return the definitions of a project's parameters. Raises NotFound."""
        if project not in self._parameters:
            self._parameters[project] = await self._uow.projects.parameters(project)
        return self._parameters[project]
