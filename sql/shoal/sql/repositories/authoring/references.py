"""Which workflows name which, by their newest definitions."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Row, Text, select, tuple_, type_coerce

from shoal.core.access.authorization import Visible
from shoal.core.logic.dependency_graph import Linked
from shoal.core.logic.dependency_rules import WorkflowName
from shoal.core.logic.references import Name, WorkflowReference, cycle, links, references, runs
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.schema.tables import project, workflow, workflow_version
from shoal.sql.statements.rows import leave_out, readable

_DEEPEST = 20  # levels of sub-workflows; deeper ones do not start
_MOST_NAMED = 1_000  # workflows that are searched for a way back
_TOGETHER = 200  # definitions that are read by one statement

_NEWEST = (
    select(
        workflow.c.id,
        project.c.id.label("project_id"),
        project.c.name.label("project"),
        workflow.c.name,
        workflow_version.c.spec,
    )
    .join_from(workflow, project)
    .join(workflow_version, workflow_version.c.workflow_id == workflow.c.id)
    .where(workflow.c.deleted_at.is_(None), workflow_version.c.version == workflow.c.version)
    .order_by(project.c.name, workflow.c.name)
)
_WORKFLOWS = (
    select(
        workflow.c.id,
        workflow.c.project_id,
        project.c.name.label("project"),
        workflow.c.name,
    )
    .join_from(workflow, project)
    .where(workflow.c.deleted_at.is_(None))
)


def _says(text: str) -> ColumnElement[bool]:
    """Reads all definitions, so that few have to be parsed."""
    return type_coerce(workflow_version.c.spec, Text).contains(text, autoescape=True)


@dataclass(frozen=True)
class Referrer:
    """A task of ``project``/``workflow`` names the workflow that was asked about."""

    project: str
    workflow: str
    named: WorkflowReference


@dataclass(frozen=True)
class Referrers:
    """Those that the caller may see, and how many workflows more there are."""

    seen: tuple[Referrer, ...]
    hidden: int

    @property
    def workflows(self) -> tuple[str, ...]:
        """The visible ones, PROJECT/NAME, each once."""
        return tuple(dict.fromkeys(f"{one.project}/{one.workflow}" for one in self.seen))


@dataclass(frozen=True)
class Network:
    """Visible workflows with what they name, their ids, and how many hidden ones name each."""

    known: Mapping[WorkflowName, Linked]
    ids: Mapping[WorkflowName, int]
    hidden: Mapping[WorkflowName, int]


class References:
    """Reads ``workflow_version`` for what its definitions name."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def to(self, home: str, name: str, visible: Visible) -> Referrers:
        """Return who names a workflow, other than itself, by project and name."""
        query = _NEWEST.where(_says(f'"workflow":"{name}"'))
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

    async def all(self, visible: Visible) -> "Network":
        """Return what all workflows name that the caller may see, and how often others name them.

        A workflow that names none has no links, whatever its zone; ``zones`` has that.
        """
        rows = await self._connection.rows(_NEWEST.where(_says('"workflow":"')))
        named = {
            (row.project, row.name): (row.project_id, linked)
            for row, linked in readable(rows, _linked, "workflow", leave_out, key="name")
        }
        known: dict[WorkflowName, Linked] = {}
        ids: dict[WorkflowName, int] = {}
        for row in await self._connection.rows(_WORKFLOWS):
            if visible is None or row.project_id in visible:
                name = row.project, row.name
                ids[name] = row.id
                known[name] = named[name][1] if name in named else Linked("UTC")
        hidden: Counter[WorkflowName] = Counter()
        for name, (_, linked) in named.items():
            if name not in known:
                hidden.update({(one.named.project, one.named.workflow) for one in linked.links})
        return Network(known, ids, hidden)

    async def cycle(self, home: str, spec: Mapping[str, Any], visible: Visible) -> list[Name]:
        """Return how a workflow runs itself, directly or through visible others; empty: never.

        ``spec``: its definition, which need not be published. See ``references.cycle``.
        """
        start = (home, str(spec["name"]))
        named = {start: runs(references(home, spec))}
        for _ in range(_DEEPEST):
            missing = {one for names in named.values() for one in names} - named.keys()
            if not missing or len(named) > _MOST_NAMED:
                break
            named.update((one, []) for one in missing)
            for some in batched(sorted(missing), _TOGETHER):
                is_meant = tuple_(project.c.name, workflow.c.name).in_(some)
                rows = await self._connection.rows(_NEWEST.where(is_meant))
                for row, found in readable(rows, _names, "workflow", leave_out, key="name"):
                    if visible is None or row.project_id in visible:
                        named[row.project, row.name] = runs(found)
        return cycle(start, named)

    async def zones(self, workflow_ids: Collection[int]) -> dict[int, str]:
        """Return the zones of workflows."""
        found: dict[int, str] = {}
        for some in batched(sorted(workflow_ids), _TOGETHER):
            rows = await self._connection.rows(_NEWEST.where(workflow.c.id.in_(some)))
            for row, linked in readable(rows, _linked, "workflow", leave_out, key="name"):
                found[row.id] = linked.timezone
        return found


def _linked(row: Row[Any]) -> tuple[Row[Any], Linked]:
    timezone = row.spec.get("timezone", "UTC")
    ZoneInfo(timezone)  # raises for what is none
    return row, Linked(timezone, tuple(links(row.project, row.spec)))


def _names(row: Row[Any]) -> tuple[Row[Any], list[WorkflowReference]]:
    return row, references(row.project, row.spec)
