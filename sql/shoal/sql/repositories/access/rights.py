"""The rights of principals that sign in, as they are now; and the number of their changes."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, or_, select, update

from shoal.core.access.permissions import Permission, Role, stronger
from shoal.core.access.principals import EVERYTHING, Principal, PrincipalKind, TokenScope
from shoal.sql.driver.connection import Connection
from shoal.sql.schema.access import (
    access_state,
    api_token,
    group_member,
    login_session,
    principal,
    project_role,
)

_NUMBER = 1  # of the only row
_ROLES = {str(one): one for one in Role}
_PERMISSIONS = {str(one): one for one in Permission}


@dataclass(frozen=True)
class SignedIn:
    """A principal, and how it has signed in: by a session or by a token, of which one is there.

    ``until``: when that ends at the latest. ``used_at``: when it was noted to be used last.
    """

    principal: Principal
    until: datetime | None
    used_at: datetime | None
    session_id: int | None = None
    token_id: int | None = None


class Rights:
    """Reads principals with their roles. One transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def version(self) -> int:
        """Return a number that grows with every change of rights."""
        found = await self._connection.scalar(
            select(access_state.c.version).where(access_state.c.number == _NUMBER)
        )
        return 0 if found is None else int(found)

    async def changed(self) -> None:
        """Rights change in this transaction. Others that change some wait for its end."""
        done = await self._connection.execute(
            update(access_state)
            .where(access_state.c.number == _NUMBER)
            .values(version=access_state.c.version + 1)
        )
        if done.rowcount != 1:  # the row was lost
            row = {"number": _NUMBER, "version": 1}
            await self._connection.insert_new(access_state, ["number"], row)

    async def of_token(self, digest: str, at: datetime) -> SignedIn | None:
        """Return the identity of a token at the moment ``at``; None: it is unknown or has ended."""
        c = api_token.c
        row = await self._connection.first(
            select(api_token, *_PRINCIPAL)
            .join(principal)
            .where(
                c.digest == digest,
                c.revoked_at.is_(None),
                or_(c.expires_at.is_(None), c.expires_at > at),
                principal.c.disabled_at.is_(None),
            )
        )
        if row is None:
            return None
        who = await self._principal(row, _scope(row))
        return SignedIn(who, row.expires_at, row.used_at, token_id=row.id)

    async def of_session(self, digest: str, at: datetime, used_after: datetime) -> SignedIn | None:
        """Return whose session it is at the moment ``at``; None: it is over.

        It is over, too, when it was not used after ``used_after``.
        """
        c = login_session.c
        row = await self._connection.first(
            select(login_session, *_PRINCIPAL)
            .join(principal)
            .where(
                c.digest == digest,
                c.expires_at > at,
                c.used_at > used_after,
                principal.c.disabled_at.is_(None),
            )
        )
        if row is None:
            return None
        who = await self._principal(row, EVERYTHING)
        return SignedIn(who, row.expires_at, row.used_at, session_id=row.id)

    async def of_principal(self, principal_id: int) -> Principal | None:
        """Return what an account may do by itself, without limits; None: it is disabled."""
        row = await self._connection.first(
            select(*_PRINCIPAL).where(
                principal.c.id == principal_id, principal.c.disabled_at.is_(None)
            )
        )
        return None if row is None else await self._principal(row, EVERYTHING)

    async def _principal(self, row: Row[Any], scope: TokenScope) -> Principal:
        return Principal(
            id=row.of_id,
            name=row.of_name,
            kind=PrincipalKind(row.of_kind),
            is_admin=row.of_is_admin,
            roles=await self._roles(row.of_id),
            scope=scope,
            must_change_password=row.of_must_change_password,
        )

    async def _roles(self, principal_id: int) -> dict[int, Role]:
        groups = select(group_member.c.group_id).where(group_member.c.principal_id == principal_id)
        c = project_role.c
        rows = await self._connection.rows(
            select(c.project_id, c.role).where(
                or_(c.principal_id == principal_id, c.group_id.in_(groups))
            )
        )
        found: defaultdict[int, Role | None] = defaultdict(lambda: None)
        for row in rows:
            role = _ROLES.get(row.role)  # None: a role of a newer version, which gives nothing
            found[row.project_id] = stronger(found[row.project_id], role)
        return {project: role for project, role in found.items() if role is not None}


_PRINCIPAL = tuple(
    principal.c[name].label(f"of_{name}")
    for name in ("id", "name", "kind", "is_admin", "must_change_password")
)


def _scope(row: Row[Any]) -> TokenScope:
    """Return what a token is limited to; what cannot be read gives nothing."""
    permissions = None if row.permissions is None else _permissions(row.permissions)
    projects = None if row.projects is None else _ids(row.projects)
    return TokenScope(permissions, projects)


def _permissions(stored: Any) -> frozenset[Permission]:
    if not isinstance(stored, Iterable):
        return frozenset()
    return frozenset(_PERMISSIONS[one] for one in stored if one in _PERMISSIONS)


def _ids(stored: Any) -> frozenset[int]:
    if not isinstance(stored, Iterable):
        return frozenset()
    return frozenset(one for one in stored if isinstance(one, int))
