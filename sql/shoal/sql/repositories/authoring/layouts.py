"""Layouts: one for each workflow, which goes with it."""

from typing import Any

from sqlalchemy import Row, delete, select, update

from shoal.core.definition.layout import Layout
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import workflow_layout
from shoal.sql.statements.rows import readable


class Layouts:
    """The ``workflow_layout`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, workflow_id: int) -> Layout | None:
        """Return the layout of a workflow; None: it has none."""
        query = select(workflow_layout).where(workflow_layout.c.workflow_id == workflow_id)
        row = await self._connection.first(query)
        if row is None:
            return None
        return readable([row], _layout, "layout", key="workflow_id")[0]

    async def put(self, workflow_id: int, layout: Layout) -> None:
        """Store the layout of a workflow, which the caller has locked."""
        values = {
            "content": layout.content(),
            "updated_at": layout.updated_at,
            "updated_by": layout.updated_by,
        }
        is_mine = workflow_layout.c.workflow_id == workflow_id
        changed = await self._connection.execute(
            update(workflow_layout).where(is_mine).values(values)
        )
        if changed.rowcount == 0:
            await self._connection.insert_new(
                workflow_layout, ["workflow_id"], {"workflow_id": workflow_id, **values}
            )

    async def delete(self, workflow_id: int) -> None:
        """Forget the layout of a workflow."""
        await self._connection.execute(
            delete(workflow_layout).where(workflow_layout.c.workflow_id == workflow_id)
        )


def _layout(row: Row[Any]) -> Layout:
    return Layout.of(row.content, row.updated_at, row.updated_by)
