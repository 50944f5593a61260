"""Which workflows name a workflow, by their newest definitions."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Text, select, type_coerce

from shoal.core.access.judging import Visible
from shoal.core.logic.references import Reference, references
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import project, workflow, workflow_version
from shoal.sql.statements.reading import leave_out, readable


@dataclass(frozen=True)
class Referrer:
    """A task of ``project``/``workflow`` names the workflow that was asked about."""

    project: str
    workflow: str
    named: Reference


@dataclass(frozen=True)
class Referrers:
    """Those that the caller may see, and how many workflows more there are."""

    seen: tuple[Referrer, ...]
    hidden: int

    @property
    def workflows(self) -> tuple[str, ...]:
        """The visible ones, PROJECT/NAME, each once."""
        return tuple(dict.fromkeys(f"{one.project}/{one.workflow}" for one in self.seen))


class References:
    """Reads ``workflow_version`` for what its definitions name."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def to(self, home: str, name: str, visible: Visible) -> Referrers:
        """Return who names a workflow, other than itself, by project and name."""
        query = (
            select(
                project.c.id.label("project_id"),
                project.c.name.label("project"),
                workflow.c.name,
                workflow_version.c.spec,
            )
            .join_from(workflow, project)
            .join(workflow_version, workflow_version.c.workflow_id == workflow.c.id)
            .where(
                workflow.c.deleted_at.is_(None),
                workflow_version.c.version == workflow.c.version,
                # Reads all definitions, but parses few.
                type_coerce(workflow_version.c.spec, Text).contains(
                    f'"workflow":"{name}"', autoescape=True
                ),
            )
            .order_by(project.c.name, workflow.c.name)
        )
        rows = await self._connection.rows(query)
        seen: list[Referrer] = []
        hidden = 0
        for row, named in readable(rows, _names, "workflow", leave_out, key="name"):
            if (row.project, row.name) == (home, name):
                continue
            meant = [one for one in named if (one.project, one.workflow) == (home, name)]
            if visible is None or row.project_id in visible:
                seen += [Referrer(row.project, row.name, one) for one in meant]
            else:
                hidden += bool(meant)
        return Referrers(tuple(seen), hidden)


def _names(row: Row[Any]) -> tuple[Row[Any], list[Reference]]:
    return row, references(row.project, row.spec)
