"""Which instances belong to a project or a workflow, by plain ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, select

from shoal.sql import tables
from shoal.sql.connection import Connection
from shoal.sql.tables import workflow_instance


@dataclass(frozen=True)
class Scope:
    """The instances that have one of ``ids`` in ``column``."""

    column: Column[Any]  # workflow_id or project_id of ``workflow_instance``
    ids: Sequence[int]

    def condition(self) -> ColumnElement[bool]:
        """Return it as a condition on ``workflow_instance``."""
        return self.column.in_(self.ids)


async def scope(connection: Connection, project: str | None, workflow: str | None) -> Scope | None:
    """Return the scope that the names mean; None if neither is given: all instances.

    The ids are looked up first, instead of joining: an index on them is then the way.
    """
    c = workflow_instance.c
    if workflow is not None:
        query = select(tables.workflow.c.id).where(tables.workflow.c.name == workflow)
        if project is not None:
            query = query.join(tables.project).where(tables.project.c.name == project)
        return Scope(c.workflow_id, [row.id for row in await connection.rows(query)])
    if project is not None:
        query = select(tables.project.c.id).where(tables.project.c.name == project)
        return Scope(c.project_id, [row.id for row in await connection.rows(query)])
    return None
