"""Read a secret as a task would get it, to try it, or what is made with it."""

import asyncio

from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.vault import Vault
from shoal.sql.repositories.definitions.secrets import StoredSecret


async def open_secret(
    stored: StoredSecret, project: str, name: str, vault: Vault, stores: SecretStores
) -> str:
    """Return the value, which is for nobody to see. Raises VaultError, SecretStoreError."""
    if stored.reference is not None:
        return await stores.read(project, stored.reference)
    return await asyncio.to_thread(vault.open, project, name, stored.ciphertext)
