"""Which role principals and groups have in a project."""

from typing import Any

from sqlalchemy import ColumnElement, Row, delete, insert, literal, select, union_all, update

from shoal.core.access.permissions import Role
from shoal.core.access.principals import PrincipalKind, key_of
from shoal.core.access.records import HolderKind, ProjectMember
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.repositories.access.rights import Rights
from shoal.sql.schema.access import principal, principal_group, project_role
from shoal.sql.statements.rows import readable

_MemberList = list[ProjectMember]
_PRINCIPALS = {
    HolderKind.USER: PrincipalKind.USER,
    HolderKind.SERVICE_ACCOUNT: PrincipalKind.SERVICE_ACCOUNT,
}
_KINDS = {str(stored): kind for kind, stored in _PRINCIPALS.items()}


class MemberRepository:
    """The ``project_role`` table."""

    def __init__(self, connection: Connection, rights: Rights) -> None:
        self._connection, self._rights = connection, rights

    async def list(self, project_id: int) -> _MemberList:
        """Return who has a role in a project, by kind and name."""
        c = project_role.c
        accounts = select(
            principal.c.kind.label("kind"), principal.c.name.label("name"), c.role
        ).where(c.principal_id == principal.c.id, c.project_id == project_id)
        groups = select(
            literal(str(HolderKind.GROUP)).label("kind"),
            principal_group.c.name.label("name"),
            c.role,
        ).where(c.group_id == principal_group.c.id, c.project_id == project_id)
        rows = await self._connection.rows(union_all(accounts, groups))
        found = readable(rows, _member, "member", key="name")
        return sorted(found, key=lambda member: (member.kind, key_of(member.name)))

    async def put(self, project_id: int, kind: HolderKind, name: str, role: Role) -> bool:
        """Give a role, instead of the one that there may be; return whether there was none.

        Raises NotFound if there is no such principal or group.
        """
        await self._rights.changed()
        column, holder = await self._holder(kind, name)
        c = project_role.c
        found = await self._connection.execute(
            update(project_role)
            .where(c.project_id == project_id, column == holder)
            .values(role=str(role))
        )
        if found.rowcount:
            return False
        row = {"project_id": project_id, column.key: holder, "role": str(role)}
        await self._connection.execute(insert(project_role).values(row))
        return True

    async def remove(self, project_id: int, kind: HolderKind, name: str) -> None:
        """Take the role away. Raises NotFound."""
        await self._rights.changed()
        column, holder = await self._holder(kind, name)
        found = await self._connection.execute(
            delete(project_role).where(project_role.c.project_id == project_id, column == holder)
        )
        if found.rowcount != 1:
            raise NotFound("member", f"{kind} {name}")

    async def _holder(self, kind: HolderKind, name: str) -> tuple[ColumnElement[Any], int]:
        if kind is HolderKind.GROUP:
            query = select(principal_group.c.id).where(principal_group.c.key == key_of(name))
            column: ColumnElement[Any] = project_role.c.group_id
        else:
            query = select(principal.c.id).where(
                principal.c.key == key_of(name), principal.c.kind == _PRINCIPALS[kind]
            )
            column = project_role.c.principal_id
        row = await self._connection.first(query)
        if row is None:
            raise NotFound(kind.replace("-", " "), name)
        return column, row.id


def _member(row: Row[Any]) -> ProjectMember:
    kind = _KINDS.get(row.kind, HolderKind.GROUP)
    return ProjectMember(kind, row.name, Role(row.role))
