"""Drafts: definitions as people type them, one for each workflow and editor, never run."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, delete, func, select, tuple_, update

from shoal.core.definition.drafts import DefinitionDraft, DraftInfo
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import DraftChanged, NotFound
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.schema.tables import draft, project, workflow
from shoal.sql.statements.rows import enough, readable, require_numbers

_InfoList = list[DraftInfo]


class Drafts:
    """The ``draft`` table."""

    def __init__(self, connection: Connection, projects: Projects) -> None:
        self._connection = connection
        self._projects = projects

    async def get(
        self, home: str, name: str, editor: str, *, lock: bool = False
    ) -> DefinitionDraft:
        """Return a draft; ``lock``: until the transaction ends. Raises NotFound."""
        query = _drafts(draft.c.text).where(*_is(home, name, editor))
        row = await self._connection.first(query.with_for_update(of=draft) if lock else query)
        if row is None:
            raise NotFound("draft", f"{home}/{name} of {editor}")
        return readable([row], _draft, "draft", key="name")[0]

    async def add(
        self, home: str, name: str, editor: str, text: str, base_version: int, at: datetime
    ) -> bool:
        """Store a new draft; return False if there is one already. Raises NotFound."""
        values = {
            "project_id": (await self._projects.get(home)).id,
            "name": name,
            "editor": editor,
            "text": text,
            "base_version": base_version,
            "revision": 1,
            "created_at": at,
            "updated_at": at,
        }
        key = ["project_id", "name", "editor"]
        return bool(await self._connection.insert_new(draft, key, values))

    async def change(
        self, found: DefinitionDraft, text: str, base_version: int, at: datetime
    ) -> None:
        """Change a draft. Raises DraftChanged unless it is as it was found."""
        changed = await self._connection.execute(
            update(draft)
            .where(draft.c.id == found.id, draft.c.revision == found.revision)
            .values(
                text=text, base_version=base_version, revision=found.revision + 1, updated_at=at
            )
        )
        if changed.rowcount != 1:
            raise DraftChanged(found.project, found.name)

    async def delete(self, found: DefinitionDraft) -> None:
        """Delete a draft. Raises DraftChanged unless it is as it was found."""
        gone = await self._connection.execute(
            delete(draft).where(draft.c.id == found.id, draft.c.revision == found.revision)
        )
        if gone.rowcount != 1:
            raise DraftChanged(found.project, found.name)

    async def list(
        self,
        home: str,
        name: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 50,
    ) -> _InfoList:
        """Return the drafts of a project by (name, editor), starting behind ``after``."""
        query = _drafts().where(project.c.name == home).order_by(draft.c.name, draft.c.editor)
        if name is not None:
            query = query.where(draft.c.name == name)
        if after is not None:
            query = query.where(tuple_(draft.c.name, draft.c.editor) > after)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _info, "draft", limit, key="name"
        )

    async def count(self, home: str, name: str) -> int:
        """Return how many people have a draft of a workflow."""
        query = (
            select(func.count())
            .select_from(draft)
            .join(project)
            .where(project.c.name == home, draft.c.name == name)
        )
        return int(await self._connection.scalar(query) or 0)

    async def rename(self, home: str, name: str, new: str) -> None:
        """Let drafts follow a workflow to its new name; who has one of that name keeps both."""
        taken = draft.alias("taken")
        has_both = (
            select(taken.c.id)
            .where(
                taken.c.project_id == draft.c.project_id,
                taken.c.name == new,
                taken.c.editor == draft.c.editor,
            )
            .exists()
        )
        owner = select(project.c.id).where(project.c.name == home).scalar_subquery()
        await self._connection.execute(
            update(draft)
            .where(draft.c.project_id == owner, draft.c.name == name, ~has_both)
            .values(name=new, revision=draft.c.revision + 1)
        )


def _drafts(*more: Any) -> Select[Any]:
    d = draft.c
    newest = (
        select(workflow.c.version)
        .where(
            workflow.c.project_id == d.project_id,
            workflow.c.name == d.name,
            workflow.c.deleted_at.is_(None),
        )
        .scalar_subquery()
    )
    return select(
        d.id,
        d.name,
        d.editor,
        d.base_version,
        d.revision,
        d.created_at,
        d.updated_at,
        project.c.name.label("project"),
        func.coalesce(newest, 0).label("newest"),
        *more,
    ).join_from(draft, project)


def _is(home: str, name: str, editor: str) -> tuple[ColumnElement[bool], ...]:
    return project.c.name == home, draft.c.name == name, draft.c.editor == editor


def _fields(row: Row[Any]) -> dict[str, Any]:
    require_numbers(row, "base_version", "revision")
    names = ("id", "project", "name", "editor", "base_version", "newest", "revision")
    return {name: getattr(row, name) for name in (*names, "created_at", "updated_at")}


def _info(row: Row[Any]) -> DraftInfo:
    return DraftInfo(**_fields(row))


def _draft(row: Row[Any]) -> DefinitionDraft:
    return DefinitionDraft(**_fields(row), text=row.text)
