"""Which instances belong to a project or a workflow, by plain ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, bindparam, select

from shoal.core.access.authorization import Visible
from shoal.sql.driver.connection import Connection
from shoal.sql.schema import tables
from shoal.sql.schema.tables import workflow_instance

_PROJECT = select(tables.project.c.id).where(tables.project.c.name == bindparam("project"))
_WORKFLOWS = select(tables.workflow.c.id, tables.workflow.c.project_id).where(
    tables.workflow.c.name == bindparam("workflow")
)
_WORKFLOW_OF_PROJECT = _WORKFLOWS.join(tables.project).where(
    tables.project.c.name == bindparam("project")
)


@dataclass(frozen=True)
class InstanceScope:
    """The instances that have one of ``ids`` in ``column``."""

    column: Column[Any]  # workflow_id or project_id of ``workflow_instance``
    ids: Sequence[int]

    def condition(self) -> ColumnElement[bool]:
        """Return it as a condition on ``workflow_instance``."""
        return self.column.in_(self.ids)


async def scope(
    connection: Connection, project: str | None, workflow: str | None, visible: Visible = None
) -> InstanceScope | None:
    """Return the scope that the names mean, within what is visible; None: all instances.

    The ids are read first, instead of joining: then their index is used.
    """
    c = workflow_instance.c
    names = {"project": project, "workflow": workflow}
    if workflow is not None:
        query = _WORKFLOWS if project is None else _WORKFLOW_OF_PROJECT
        rows = await connection.rows(query, names)
        ids = [row.id for row in rows if visible is None or row.project_id in visible]
        return InstanceScope(c.workflow_id, ids)
    if project is not None:
        rows = await connection.rows(_PROJECT, names)
        ids = [row.id for row in rows if visible is None or row.id in visible]
        return InstanceScope(c.project_id, ids)
    return None if visible is None else InstanceScope(c.project_id, sorted(visible))
