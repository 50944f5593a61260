"""The values of secrets: encrypted in the database, or kept in secret stores."""

import asyncio
from dataclasses import dataclass, field

import structlog

from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.vault import UnknownVaultKey, Vault
from shoal.sql import Database
from shoal.sql.repositories.definitions.secrets import StoredSecret

log = structlog.get_logger()


@dataclass(frozen=True)
class SecretValues:
    """Encrypts and reads values. One per process."""

    vault: Vault = field(repr=False)
    stores: SecretStores

    async def seal(
        self, database: Database, project: str, name: str, value: str
    ) -> tuple[str, str | None]:
        """Encrypt a value; return the ciphertext, and the key that ``Sealing.holds`` checks.

        Raises NoSecretsKey, UnknownKey, SqlError.
        """
        async with database.unit_of_work(read_only=True) as uow:
            state = await uow.sealing.state()
        try:
            ciphertext = await asyncio.to_thread(
                self.vault.seal, project, name, value, state.primary
            )
        except UnknownVaultKey:
            log.warning("the key that encrypts is not here", key=state.primary)
            raise
        return ciphertext, state.primary

    async def open(self, stored: StoredSecret, project: str, name: str) -> str:
        """Return the value as a task would get it. Raises VaultError, SecretStoreError."""
        if stored.reference is not None:
            return await self.stores.read(project, stored.reference)
        return await asyncio.to_thread(self.vault.open, project, name, stored.ciphertext)
