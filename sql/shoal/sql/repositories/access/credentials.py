"""What principals sign in with besides passwords: sessions of browsers, and tokens."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, update

from shoal.core.access.permissions import Permission
from shoal.core.access.principals import TokenScope
from shoal.core.access.records import ApiToken, LoginSession
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.repositories.access.rights import Rights
from shoal.sql.schema.access import api_token, login_session, principal
from shoal.sql.schema.tables import project
from shoal.sql.statements.rows import leave_out, readable, record_of

_SessionList = list[LoginSession]
_TokenList = list[ApiToken]


class Sessions:
    """The ``login_session`` table. Sessions are known by the SHA-256 of their secret."""

    def __init__(self, connection: Connection, rights: Rights) -> None:
        self._connection, self._rights = connection, rights

    async def add(
        self,
        principal_id: int,
        digest: str,
        at: datetime,
        expires_at: datetime,
        *,
        address: str,
        agent: str,
    ) -> None:
        """Begin a session."""
        await self._connection.execute(
            insert(login_session).values(
                principal_id=principal_id,
                digest=digest,
                created_at=at,
                used_at=at,
                expires_at=expires_at,
                address=address,
                agent=agent,
            )
        )

    async def list(self, principal_id: int, at: datetime) -> _SessionList:
        """Return the sessions of a principal that are not over, the newest first."""
        c = login_session.c
        rows = await self._connection.rows(
            select(login_session)
            .where(c.principal_id == principal_id, c.expires_at > at)
            .order_by(c.id.desc())
        )
        return readable(rows, _session, "session", leave_out)

    async def touch(self, session_id: int, at: datetime) -> None:
        """Note that a session was used."""
        await self._connection.execute(
            update(login_session).where(login_session.c.id == session_id).values(used_at=at)
        )

    async def end(self, principal_id: int, session_id: int) -> None:
        """End a session of a principal. Raises NotFound."""
        await self._rights.changed()
        c = login_session.c
        found = await self._connection.execute(
            delete(login_session).where(c.id == session_id, c.principal_id == principal_id)
        )
        if found.rowcount != 1:
            raise NotFound("session", session_id)

    async def end_all(self, principal_id: int, but: int | None = None) -> None:
        """End all sessions of a principal, but one perhaps."""
        await self._rights.changed()
        c = login_session.c
        query = delete(login_session).where(c.principal_id == principal_id)
        await self._connection.execute(query if but is None else query.where(c.id != but))

    async def forget(self, expired_before: datetime, unused_since: datetime) -> int:
        """Delete what is over; return how many there were."""
        c = login_session.c
        found = await self._connection.execute(
            delete(login_session).where(
                (c.expires_at <= expired_before) | (c.used_at <= unused_since)
            )
        )
        return found.rowcount


class Tokens:
    """The ``api_token`` table. Tokens are known by the SHA-256 of their text."""

    def __init__(self, connection: Connection, rights: Rights) -> None:
        self._connection, self._rights = connection, rights

    async def add(
        self,
        principal_id: int,
        name: str,
        digest: str,
        scope: TokenScope,
        at: datetime,
        expires_at: datetime | None,
    ) -> ApiToken:
        """Store a token; return it."""
        permissions = None if scope.permissions is None else sorted(map(str, scope.permissions))
        await self._connection.execute(
            insert(api_token).values(
                principal_id=principal_id,
                name=name,
                digest=digest,
                permissions=permissions,
                projects=None if scope.projects is None else sorted(scope.projects),
                created_at=at,
                expires_at=expires_at,
            )
        )
        rows = await self._connection.rows(_tokens().where(api_token.c.digest == digest))
        return (await self._read(rows))[0]

    async def list(self, principal_id: int) -> _TokenList:
        """Return the tokens of a principal that are not revoked, the newest first."""
        c = api_token.c
        rows = await self._connection.rows(
            _tokens()
            .where(c.principal_id == principal_id, c.revoked_at.is_(None))
            .order_by(c.id.desc())
        )
        return await self._read(rows)

    async def touch(self, token_id: int, at: datetime) -> None:
        """Note that a token was used."""
        await self._connection.execute(
            update(api_token).where(api_token.c.id == token_id).values(used_at=at)
        )

    async def revoke(self, principal_id: int, token_id: int, at: datetime) -> None:
        """Make a token of a principal worthless. Raises NotFound."""
        await self._rights.changed()
        c = api_token.c
        found = await self._connection.execute(
            update(api_token)
            .where(c.id == token_id, c.principal_id == principal_id, c.revoked_at.is_(None))
            .values(revoked_at=at)
        )
        if found.rowcount != 1:
            raise NotFound("token", token_id)

    async def revoke_all(self, principal_id: int, at: datetime) -> None:
        """Make all tokens of a principal worthless."""
        await self._rights.changed()
        c = api_token.c
        await self._connection.execute(
            update(api_token)
            .where(c.principal_id == principal_id, c.revoked_at.is_(None))
            .values(revoked_at=at)
        )

    async def _read(self, rows: Collection[Row[Any]]) -> _TokenList:
        ids = {one for row in rows for one in row.projects or ()}
        named = {}
        if ids:
            query = select(project.c.id, project.c.name).where(project.c.id.in_(sorted(ids)))
            named = {row.id: row.name for row in await self._connection.rows(query)}

        def token(row: Row[Any]) -> ApiToken:
            limit = row.permissions
            projects = row.projects
            return record_of(
                ApiToken,
                row,
                permissions=None if limit is None else tuple(map(Permission, limit)),
                projects=None if projects is None else tuple(named[one] for one in projects),
            )

        return readable(list(rows), token, "token", leave_out)


def _tokens() -> Select[Any]:
    return select(api_token, principal.c.name.label("owner")).join(principal)


def _session(row: Row[Any]) -> LoginSession:
    return record_of(LoginSession, row)
