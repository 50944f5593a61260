"""Secrets of projects, by name: ciphertext (``shoal.runtime.vault``), or where the secret is kept
(``shoal.runtime.secret_stores``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from shoal.core.runs.records import SecretInfo
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.schema.tables import project, secret
from shoal.sql.statements.rows import leave_out, readable

_SecretList = list[SecretInfo]


@dataclass(frozen=True)
class StoredSecret:
    """A secret as it is stored: encrypted, or with a ``reference`` to where it is kept."""

    ciphertext: str = field(default="", repr=False)
    reference: str | None = None


class SecretRepository:
    """The ``secret`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def put(self, of: str, name: str, ciphertext: str, at: datetime) -> bool:
        """Store a secret of project ``of``; return whether it is new. Raises NotFound."""
        return await self._put(of, name, StoredSecret(ciphertext), at)

    async def refer(self, of: str, name: str, reference: str, at: datetime) -> bool:
        """Store where a secret of a project is kept; otherwise as ``put``."""
        return await self._put(of, name, StoredSecret(reference=reference), at)

    async def _put(self, of: str, name: str, stored: StoredSecret, at: datetime) -> bool:
        project_id = await self._project_id(of, lock=True)  # two may set it for the first time
        found = await self._connection.execute(
            update(secret)
            .where(secret.c.project_id == project_id, secret.c.name == name)
            .values(ciphertext=stored.ciphertext, reference=stored.reference, updated_at=at)
        )
        if found.rowcount:
            return False
        await self._connection.execute(
            insert(secret),
            {
                "project_id": project_id,
                "name": name,
                "ciphertext": stored.ciphertext,
                "reference": stored.reference,
                "created_at": at,
                "updated_at": at,
            },
        )
        return True

    async def get(self, of: str, name: str) -> SecretInfo:
        """Return what may be known of a secret: not its value. Raises NotFound."""
        found = [one for one in await self.list(of) if one.name == name]
        if not found:
            raise NotFound("secret", f"{of}/{name}")
        return found[0]

    async def list(self, of: str) -> _SecretList:
        """Return what may be known of a project's secrets, by name. Raises NotFound."""
        project_id = await self._project_id(of)
        query = select(secret).where(secret.c.project_id == project_id).order_by(secret.c.name)
        rows = await self._connection.rows(query)
        return readable(rows, _info, "secret", leave_out, key="name")

    async def stored(self, of: str) -> Mapping[str, StoredSecret]:
        """Return all secrets of a project as they are stored, by name."""
        columns = (secret.c.name, secret.c.ciphertext, secret.c.reference)
        query = select(*columns).join(project).where(project.c.name == of)
        rows = await self._connection.rows(query)
        return {row.name: StoredSecret(row.ciphertext, row.reference) for row in rows}

    async def delete(self, of: str, name: str) -> None:
        """Forget a secret. Raises NotFound."""
        project_id = await self._project_id(of)
        found = await self._connection.execute(
            delete(secret).where(secret.c.project_id == project_id, secret.c.name == name)
        )
        if found.rowcount != 1:
            raise NotFound("secret", f"{of}/{name}")

    async def _project_id(self, name: str, *, lock: bool = False) -> int:
        query = select(project.c.id).where(project.c.name == name)
        row = await self._connection.first(query.with_for_update() if lock else query)
        if row is None:
            raise NotFound("project", name)
        found: int = row.id
        return found


def _info(row: Row[Any]) -> SecretInfo:
    return SecretInfo(row.name, row.created_at, row.updated_at, row.reference)
