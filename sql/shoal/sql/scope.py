"""Which instances belong to a project or a workflow, as a condition with plain ids."""

from sqlalchemy import ColumnElement, select

from shoal.sql import tables
from shoal.sql.connection import Connection
from shoal.sql.tables import workflow_instance


async def scope(
    connection: Connection, project: str | None, workflow: str | None
) -> list[ColumnElement[bool]]:
    """Return conditions on ``workflow_instance``; none if neither name is given.

    The ids are looked up first, instead of joining: so the database knows how rare these rows
    are when it chooses between walking back through the newest ones and going by an index.
    """
    c = workflow_instance.c
    if workflow is not None:
        query = select(tables.workflow.c.id).where(tables.workflow.c.name == workflow)
        if project is not None:
            query = query.join(tables.project).where(tables.project.c.name == project)
        rows = await connection.rows(query)
        return [c.workflow_id.in_([row.id for row in rows])]
    if project is not None:
        query = select(tables.project.c.id).where(tables.project.c.name == project)
        rows = await connection.rows(query)
        return [c.project_id.in_([row.id for row in rows])]
    return []
