"""Before a master takes any work: has it the keys that secrets are encrypted with?"""

import asyncio

from shoal.runtime.vault import Vault, is_ciphertext, key_of
from shoal.sql import Database


async def require_keys(database: Database, vault: Vault) -> None:
    """Return if all that is encrypted can be decrypted here, or there is nothing.

    A master without a key would let tasks fail that the others can start. Raises NoSecretsKey,
    KeyFileOpen, UnknownKey, SqlError.
    """
    async with database.unit_of_work(read_only=True) as uow:
        state = await uow.sealing.state()
        stored = await uow.sealing.ciphertexts()
    # What cannot be read fails the tasks that use it, and stops nothing else.
    used = {key_of(one) for one in stored if is_ciphertext(one)}
    needed = {key for key in (*used, state.primary, state.next) if key is not None}
    if used or needed:
        await asyncio.to_thread(vault.require, needed)
