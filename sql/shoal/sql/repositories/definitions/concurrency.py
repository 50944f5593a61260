"""Concurrency groups of projects: their slots, the attempts that have one, and that wait.

``Slots`` gives the slots to attempts.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    delete,
    func,
    insert,
    literal,
    select,
    tuple_,
    type_coerce,
    update,
)

from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.concurrency import OCCUPIES_SLOT, SlotUser, qualified
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.states import TaskState
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import ConcurrencyGroupInUse, NotFound
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.schema.tables import (
    IS_BLOCKED,
    SLOT_ORDER,
    concurrency_group,
    concurrency_lease,
    literals,
    project,
    task_instance,
    workflow,
    workflow_instance,
    workflow_version,
)
from shoal.sql.statements.quarantined import is_quarantined
from shoal.sql.statements.rows import enough, leave_out, readable, record_of, require_numbers

_IS_QUARANTINED = is_quarantined(task_instance.c.workflow_instance_id, ItemKind.INSTANCE)
# Tasks of quarantined runs hold no slot and get none: nothing happens in these runs, so they would
# keep it until someone repairs them.
OCCUPIES = task_instance.c.state.in_(literals(OCCUPIES_SLOT)) & ~_IS_QUARANTINED
AWAITS_SLOT = IS_BLOCKED & ~_IS_QUARANTINED
HAS_LEASE = (
    select(concurrency_lease.c.task_instance_id)
    .where(concurrency_lease.c.task_instance_id == task_instance.c.id)
    .exists()
)
QUALIFIED: ColumnElement[str] = project.c.name.concat(literal("/")).concat(concurrency_group.c.name)


@dataclass(frozen=True)
class ConcurrencyGroup:
    """A group as it is now."""

    project: str
    name: str
    description: str
    slots: int
    updated_at: datetime
    taken: int  # slots in use; more than ``slots`` after there were made fewer
    waiting: int  # attempts that wait for one


_GroupList = list[ConcurrencyGroup]
_UserList = list[SlotUser]
_NameList = list[str]


class ConcurrencyGroups:
    """The ``concurrency_group`` table."""

    def __init__(self, connection: Connection, projects: Projects) -> None:
        self._connection = connection
        self._projects = projects

    async def put(
        self, home: str, name: str, slots: int, description: str, at: datetime
    ) -> tuple[ConcurrencyGroup, bool]:
        """Make or change a group; return it and whether it is new. The project is made too.

        Fewer slots end nothing: as attempts end, none takes their place until few enough are left.
        """
        owner = await self._projects.hold(home, at)
        values = {"description": description, "slots": slots, "updated_at": at}
        changed = await self._connection.execute(
            update(concurrency_group)
            .where(concurrency_group.c.project_id == owner.id, concurrency_group.c.name == name)
            .values(values)
        )
        if changed.rowcount == 0:
            await self._connection.execute(
                insert(concurrency_group).values(project_id=owner.id, name=name, **values)
            )
        return await self.get(home, name), changed.rowcount == 0

    async def get(self, home: str, name: str) -> ConcurrencyGroup:
        """Return a group. Raises NotFound."""
        row = await self._connection.first(_named(_groups(), home, name))
        if row is None:
            raise NotFound("concurrency group", qualified(home, name))
        return readable([row], _group, "concurrency group", key="name")[0]

    async def list(
        self,
        home: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 50,
    ) -> _GroupList:
        """Return groups by (project, name), starting behind ``after``."""
        query = _groups().order_by(project.c.name, concurrency_group.c.name)
        if home is not None:
            query = query.where(project.c.name == home)
        if after is not None:
            query = query.where(tuple_(project.c.name, concurrency_group.c.name) > after)
        return await enough(
            lambda wanted: self._connection.rows(query.limit(wanted)),
            _group,
            "concurrency group",
            limit,
            key="name",
        )

    async def holders(self, home: str, name: str, limit: int = 100) -> _UserList:
        """Return the attempts that have a slot, those first that have it longest."""
        query = (
            _users(concurrency_lease.c.granted_at)
            .join(
                concurrency_lease,
                concurrency_lease.c.task_instance_id == task_instance.c.id,
            )
            .join(concurrency_group, concurrency_group.c.id == concurrency_lease.c.group_id)
            .join(project, project.c.id == concurrency_group.c.project_id)
            .where(OCCUPIES)
            .order_by(concurrency_lease.c.granted_at, task_instance.c.id)
        )
        rows = await self._connection.rows(_named(query, home, name).limit(limit))
        return readable(rows, _user, "task instance", leave_out)

    async def waiters(self, home: str, name: str, limit: int = 100) -> _UserList:
        """Return the attempts that wait, in the order in which they get a slot."""
        rows = await self._connection.rows(
            _users(literal(None).label("granted_at"))
            .where(
                task_instance.c.concurrency_group == qualified(home, name), AWAITS_SLOT, ~HAS_LEASE
            )
            .order_by(*SLOT_ORDER)
            .limit(limit)
        )
        return readable(rows, _user, "task instance", leave_out)

    async def delete(self, home: str, name: str) -> None:
        """Delete a group. Raises NotFound, and ConcurrencyGroupInUse while it is needed."""
        query = _named(
            select(concurrency_group.c.id, project.c.id.label("project_id")).join_from(
                concurrency_group, project
            ),
            home,
            name,
        )
        row = await self._connection.first(query.with_for_update(of=concurrency_group))
        if row is None:
            raise NotFound("concurrency group", qualified(home, name))
        users = await self._users_of(row.project_id, name)
        found = await self.get(home, name)
        if users or found.taken or found.waiting:
            raise ConcurrencyGroupInUse(home, name, users, found.taken + found.waiting)
        await self._connection.execute(
            delete(concurrency_lease).where(concurrency_lease.c.group_id == row.id)
        )
        await self._connection.execute(
            delete(concurrency_group).where(concurrency_group.c.id == row.id)
        )

    async def _users_of(self, project_id: int, name: str) -> _NameList:
        """Return the workflows whose newest version names the group."""
        wanted = f'"concurrency_group":"{name}"'
        query = (
            select(workflow.c.name, workflow_version.c.spec)
            .join_from(workflow, workflow_version)
            .where(
                workflow.c.project_id == project_id,
                workflow.c.deleted_at.is_(None),
                workflow_version.c.version == workflow.c.version,
                # Reads all definitions of the project, but parses few.
                type_coerce(workflow_version.c.spec, Text).contains(wanted, autoescape=True),
            )
            .order_by(workflow.c.name)
        )
        return [
            row.name
            for row in await self._connection.rows(query)
            if any(task.get("concurrency_group") == name for task in row.spec["tasks"])
        ]

    async def require(self, spec: WorkflowSpec) -> None:
        """Raise InvalidDefinition unless there are all groups that a definition names.

        None of them is deleted until the transaction ends.
        """
        names = {t.concurrency_group for t in spec.tasks if t.concurrency_group is not None}
        if not names:
            return
        known = await self._held(spec.project, names)
        problems = [
            DefinitionProblem(
                ("tasks", index, "concurrency_group"),
                f"project {spec.project} has no concurrency group {task.concurrency_group!r}; "
                "make it with `shoal concurrency set "
                f"{qualified(spec.project, task.concurrency_group)} SLOTS`",
            )
            for index, task in enumerate(spec.tasks)
            if task.concurrency_group is not None and task.concurrency_group not in known
        ]
        if problems:
            raise InvalidDefinition(problems)

    async def _held(self, home: str, names: Collection[str]) -> set[str]:
        query = (
            select(concurrency_group.c.name)
            .join_from(concurrency_group, project)
            .where(project.c.name == home, concurrency_group.c.name.in_(sorted(names)))
            .order_by(concurrency_group.c.id)
            # Slots can be given meanwhile; only the row cannot go.
            .with_for_update(read=True, key_share=True, of=concurrency_group)
        )
        return {row.name for row in await self._connection.rows(query)}


def _groups() -> Select[Any]:
    taken = (
        select(func.count())
        .select_from(concurrency_lease)
        .join(task_instance, task_instance.c.id == concurrency_lease.c.task_instance_id)
        .where(concurrency_lease.c.group_id == concurrency_group.c.id, OCCUPIES)
        .scalar_subquery()
    )
    waiting = (
        select(func.count())
        .select_from(task_instance)
        .where(task_instance.c.concurrency_group == QUALIFIED, AWAITS_SLOT, ~HAS_LEASE)
        .correlate(concurrency_group, project)
        .scalar_subquery()
    )
    return select(
        concurrency_group,
        project.c.name.label("project"),
        taken.label("taken"),
        waiting.label("waiting"),
    ).join_from(concurrency_group, project)


def _named(query: Select[Any], home: str, name: str) -> Select[Any]:
    return query.where(project.c.name == home, concurrency_group.c.name == name)


def _group(row: Row[Any]) -> ConcurrencyGroup:
    require_numbers(row, "slots")
    return record_of(ConcurrencyGroup, row)


def _users(granted_at: ColumnElement[Any]) -> Select[Any]:
    t = task_instance.c
    return (
        select(
            t.id,
            t.workflow_instance_id,
            t.task,
            t.attempt,
            t.state,
            workflow.c.name.label("workflow"),
            granted_at,
        )
        .join_from(task_instance, workflow_instance)
        .join(workflow, workflow.c.id == workflow_instance.c.workflow_id)
    )


def _user(row: Row[Any]) -> SlotUser:
    return record_of(SlotUser, row, task_instance_id=row.id, state=TaskState(row.state))
