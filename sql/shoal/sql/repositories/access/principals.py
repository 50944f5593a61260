"""Users and service accounts."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, func, insert, select, update

from shoal.core.access.principals import PrincipalKind, key_of
from shoal.core.access.records import Account, NewAccount
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import AccountExists, IdentityTaken, LastAdministrator, NotFound
from shoal.sql.repositories.access.rights import Rights
from shoal.sql.schema.access import group_member, principal
from shoal.sql.schema.tables import project
from shoal.sql.statements.rows import enough, readable, record_of

_AccountList = list[Account]
_KIND = "user"


@dataclass(frozen=True)
class PasswordHash:
    """What signing in needs to know of a user."""

    principal_id: int
    hash: str | None = field(repr=False)
    is_disabled: bool


class Principals:
    """The ``principal`` table."""

    def __init__(self, connection: Connection, rights: Rights) -> None:
        self._connection, self._rights = connection, rights

    async def add(self, new: NewAccount, at: datetime) -> Account:
        """Make an account. Raises AccountExists."""
        if not await self._insert(new, at):
            raise AccountExists(new.name)
        return await self.get(new.name)

    async def add_first(self, new: NewAccount, at: datetime) -> bool:
        """Make an account if there is none at all; return whether it was made.

        Of several processes that try it at the same time one succeeds.
        """
        await self._rights.changed()  # others wait for the end of this transaction
        if await self._connection.first(select(principal.c.id).limit(1)) is not None:
            return False
        return await self._insert(new, at)

    async def get(self, name: str) -> Account:
        """Return an account. Raises NotFound."""
        row = await self._connection.first(_accounts().where(principal.c.key == key_of(name)))
        if row is None:
            raise NotFound(_KIND, name)
        return readable([row], _account, _KIND)[0]

    async def hold(self, name: str) -> Account:
        """Return the same, unchanged by others until the commit. Raises NotFound."""
        query = select(principal.c.id).where(principal.c.key == key_of(name))
        await self._connection.execute(query.with_for_update(key_share=True))
        return await self.get(name)

    async def named(self, principal_id: int) -> Account:
        """Return an account by its id. Raises NotFound."""
        row = await self._connection.first(_accounts().where(principal.c.id == principal_id))
        if row is None:
            raise NotFound(_KIND, principal_id)
        return readable([row], _account, _KIND)[0]

    async def of_identity(self, issuer: str, subject: str) -> Account | None:
        """Return the account of who is ``subject`` for ``issuer``; None: there is none."""
        c = principal.c
        row = await self._connection.first(
            _accounts().where(c.issuer == issuer, c.subject == subject)
        )
        return None if row is None else readable([row], _account, _KIND)[0]

    async def link(self, principal_id: int, issuer: str, subject: str) -> None:
        """Let a user sign in elsewhere. A password that has never been used yet goes.

        Raises NotFound, IdentityTaken.
        """
        await self._rights.changed()  # others wait, so the looks below are still true at the end
        found = await self.of_identity(issuer, subject)
        own = await self.named(principal_id)
        if found is not None and found.id != principal_id:
            raise IdentityTaken(f"{subject!r} of {issuer} is {found.name} already")
        if own.issuer is not None and found is None:
            raise IdentityTaken(f"{own.name} signs in at {own.issuer} already; unlink that first")
        unused = {"password": None, "must_change_password": False}
        await self._change(
            principal_id,
            issuer=issuer,
            subject=subject,
            **(unused if own.must_change_password else {}),
        )

    async def unlink(self, principal_id: int) -> None:
        """Remove a user's link to a provider. Raises NotFound."""
        await self._change(principal_id, issuer=None, subject=None)
        c = group_member.c
        await self._connection.execute(
            delete(group_member).where(c.principal_id == principal_id, c.of_issuer)
        )

    async def list(
        self,
        kind: PrincipalKind,
        after: str | None = None,
        limit: int = 50,
        of_project: str | None = None,
    ) -> _AccountList:
        """Return accounts of one kind by name, starting behind ``after``."""
        query = _accounts().where(principal.c.kind == kind).order_by(principal.c.key)
        if of_project is not None:
            query = query.where(project.c.name == of_project)
        if after is not None:
            query = query.where(principal.c.key > key_of(after))
        return await enough(
            lambda most: self._connection.rows(query.limit(most)), _account, _KIND, limit
        )

    async def password(self, name: str) -> PasswordHash | None:
        """Return what signing in as a user needs; None if there is no such user."""
        c = principal.c
        row = await self._connection.first(
            select(principal).where(c.key == key_of(name), c.kind == PrincipalKind.USER)
        )
        if row is None:
            return None
        return PasswordHash(row.id, row.password, row.disabled_at is not None)

    async def set_password(self, principal_id: int, hashed: str, *, must_change: bool) -> None:
        """Store the hash of a new password: all sessions of the user end. Raises NotFound."""
        await self._change(principal_id, password=hashed, must_change_password=must_change)

    async def rehash(self, principal_id: int, hashed: str) -> None:
        """Store another hash of the same password, made with newer parameters."""
        await self._connection.execute(
            update(principal).where(principal.c.id == principal_id).values(password=hashed)
        )

    async def describe(self, principal_id: int, full_name: str) -> None:
        """Change what people call a principal. Raises NotFound."""
        await self._change(principal_id, full_name=full_name)

    async def set_admin(self, principal_id: int, is_admin: bool) -> None:
        """Make a user an administrator, or revoke that. Raises NotFound, LastAdministrator."""
        was_admin = (await self.named(principal_id)).is_admin
        await self._change(principal_id, is_admin=is_admin)
        if was_admin:
            await self._require_admin()

    async def disable(self, principal_id: int, at: datetime) -> None:
        """Disable an account. Raises NotFound, LastAdministrator."""
        was_admin = (await self.named(principal_id)).is_admin
        await self._change(principal_id, disabled_at=at)
        if was_admin:
            await self._require_admin()

    async def enable(self, principal_id: int) -> None:
        """Let a disabled account work again. Raises NotFound."""
        await self._change(principal_id, disabled_at=None)

    async def _insert(self, new: NewAccount, at: datetime) -> bool:
        await self._rights.changed()
        values = {
            "kind": new.kind,
            "name": new.name,
            "key": key_of(new.name),
            "full_name": new.full_name,
            "project_id": new.project_id,
            "is_admin": new.is_admin,
            "password": new.password,
            "must_change_password": new.must_change_password,
            "issuer": new.issuer,
            "subject": new.subject,
            "created_at": at,
        }
        taken = select(principal.c.id).where(principal.c.key == values["key"])
        if await self._connection.first(taken) is not None:
            return False
        await self._connection.execute(insert(principal).values(values))
        return True

    async def _change(self, principal_id: int, **values: Any) -> None:
        await self._rights.changed()
        found = await self._connection.execute(
            update(principal).where(principal.c.id == principal_id).values(values)
        )
        if found.rowcount != 1:
            raise NotFound(_KIND, principal_id)

    async def _require_admin(self) -> None:
        """The row of ``access_state`` is held, so no other transaction takes the rest away."""
        c = principal.c
        count = await self._connection.scalar(
            select(func.count()).where(c.is_admin, c.disabled_at.is_(None))
        )
        if not count:
            raise LastAdministrator


def _accounts() -> Select[Any]:
    of = project.c.name.label("project")
    return select(principal, of).outerjoin(project, principal.c.project_id == project.c.id)


def _account(row: Row[Any]) -> Account:
    return record_of(
        Account, row, kind=PrincipalKind(row.kind), has_password=row.password is not None
    )
