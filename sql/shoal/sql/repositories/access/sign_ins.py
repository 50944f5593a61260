"""Sign-ins at providers: each comes to its end once."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from shoal.sql.driver.connection import Connection
from shoal.sql.schema.access import sign_in


@dataclass(frozen=True)
class SignInCode:
    """What a command line changes into a session, once; ``challenge`` is that of its PKCE."""

    digest: str
    challenge: str
    expires_at: datetime


class SignIns:
    """The ``sign_in`` table. Secrets are known by their SHA-256."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def end(
        self,
        digest: str,
        principal_id: int,
        at: datetime,
        expires_at: datetime,
        code: SignInCode | None = None,
    ) -> bool:
        """Note that a sign-in has come to its end; return whether it had not yet.

        It is remembered until ``expires_at``. Those that have expired are forgotten.
        """
        c = sign_in.c
        await self._connection.execute(delete(sign_in).where(c.expires_at <= at))
        if await self._connection.first(select(c.digest).where(c.digest == digest)) is not None:
            return False
        await self._connection.execute(
            insert(sign_in).values(
                digest=digest,
                principal_id=principal_id,
                code=None if code is None else code.digest,
                challenge=None if code is None else code.challenge,
                code_expires_at=None if code is None else code.expires_at,
                expires_at=expires_at,
            )
        )
        return True

    async def take(self, code: str, challenge: str, at: datetime) -> int | None:
        """Exchange a code for the id of the signed-in user; None: it is unknown or has expired.

        A wrong challenge costs it nothing: only the command that began it knows the right one.
        """
        c = sign_in.c
        matches = (c.code == code, c.challenge == challenge, c.code_expires_at > at)
        row = await self._connection.first(select(c.digest, c.principal_id).where(*matches))
        if row is None:
            return None
        done = await self._connection.execute(
            update(sign_in).where(c.digest == row.digest, c.code == code).values(code=None)
        )
        return int(row.principal_id) if done.rowcount == 1 else None
