"""The secrets that options of channels name."""

import asyncio
from collections.abc import Mapping

from shoal.core.alerts.channels import ChannelFailed
from shoal.runtime.secret_stores.resolving import Resolver
from shoal.runtime.vault import Vault
from shoal.sql import Database


class Secrets:
    """Opens them, as masters do for tasks."""

    def __init__(self, database: Database, vault: Vault, resolver: Resolver) -> None:
        self._database, self._vault, self._resolver = database, vault, resolver

    async def of(self, project: str, options: Mapping[str, object], asker: int) -> dict[str, str]:
        """Return the values by the names of the options: those that end in ``_secret``.

        Raises ChannelFailed, VaultError, SecretStoreError.
        """
        wanted = {
            key: name
            for key, name in options.items()
            if key.endswith("_secret") and isinstance(name, str) and name
        }
        if not wanted:
            return {}
        async with self._database.unit_of_work(read_only=True) as uow:
            stored = await uow.secrets.stored(project)
        found = {}
        for key, name in wanted.items():
            one = stored.get(name)
            if one is None:
                text = f"{key}: the project {project} has no secret {name}"
                raise ChannelFailed(text, may_pass=False)
            if one.reference is not None:
                found[key] = await self._resolver.value(project, one.reference, asker)
            else:
                found[key] = await asyncio.to_thread(
                    self._vault.open, project, name, one.ciphertext
                )
        return found
