"""Rotation of the key that encrypts secrets: a step at a time, each durable before the next begins.

A new key is put into this machine's file; when every live master has it, it becomes the primary
key; then all that was encrypted with others is encrypted anew, in small transactions; at last the
others are retired. What is done stands in the database, so the next step, of any process, goes on
where the last one ended, whatever has died meanwhile.
"""

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import structlog

from shoal.api.schemas.platform.secrets_keys import Phase
from shoal.coordination.cluster.membership import Members
from shoal.runtime import failpoints
from shoal.runtime.key_file import KEY_BYTES
from shoal.runtime.vault import Vault, VaultError, key_of, password_of_source
from shoal.sql import Database
from shoal.sql.repositories.definitions.secrets_keys import Sealed, SealingState

log = structlog.get_logger()

KEYS = "keys"  # in what masters say of themselves: the ids of the keys that they have
_MOST_NAMED = 20


@dataclass(frozen=True)
class RotationStep:
    """What a step has done. ``without_key``: masters; ``unreadable``: PROJECT/NAME of secrets."""

    phase: Phase
    key: str
    did: str
    encrypted: int = 0
    without_key: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeyState:
    """Which keys there are, and where. ``used``: ciphertexts by key; empty: from before ids."""

    sealing: SealingState
    primary: str
    here: tuple[str, ...]
    masters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)


class KeyRotation:
    """Takes steps. ``database`` is that of a request: each step has its entry in the audit.

    ``together``: how many ciphertexts one transaction stores at most.
    """

    def __init__(
        self, database: Database, vault: Vault, masters: Members, together: int = 50
    ) -> None:
        self._database, self._vault, self._masters = database, vault, masters
        self._together = together

    async def state(self) -> KeyState:
        """Return which keys there are. Raises SqlError, CoordinationError, VaultError."""
        here = await asyncio.to_thread(self._vault.ids)
        async with self._database.unit_of_work(read_only=True) as uow:
            sealing = await uow.sealing.state()
            ciphertexts = await uow.sealing.ciphertexts()
        used: dict[str, int] = {}
        for one in ciphertexts:
            used[key_of(one) or ""] = used.get(key_of(one) or "", 0) + 1
        primary = sealing.primary or await self._first_key()
        return KeyState(sealing, primary, tuple(here), await self._keys_of_masters(), used)

    async def step(self, *, begin: bool) -> RotationStep:
        """Do what comes next. ``begin``: also begin a rotation, if none has begun.

        Raises SqlError, CoordinationError, VaultError, OSError.
        """
        async with self._database.unit_of_work(read_only=True) as uow:
            state = await uow.sealing.state()
        if state.next is not None:
            return await self._promote(state.next)
        if state.old:
            assert state.primary is not None, "it took the place of the old one"
            return await self._encrypt(state.primary, state.old)
        primary = state.primary or await self._first_key()
        gone = await asyncio.to_thread(self._vault.file.retire, state.retired)
        if begin:
            return await self._begin(primary, state)
        return RotationStep(Phase.DONE, primary, "there is nothing to do", retired=tuple(gone))

    async def _begin(self, primary: str, state: SealingState) -> RotationStep:
        """Choose the new key: one that was put into the file for it, else a random one."""
        given = [
            one
            for one in await asyncio.to_thread(self._vault.ids)
            if one != primary and one not in state.retired
        ]
        key = given[-1] if given else await asyncio.to_thread(self._add_key)
        async with self._database.unit_of_work() as uow:
            now = await uow.sealing.state(hold="change")
            if now == state:
                await uow.sealing.save(replace(now, next=key))
                failpoints.hit("rotate.before_begin")
                await uow.commit()
        failpoints.hit("rotate.after_begin")
        return RotationStep(Phase.WORKING, key, f"the new key {key} is in {self._vault.file.path}")

    def _add_key(self) -> str:
        key = os.urandom(KEY_BYTES)
        failpoints.hit("rotate.before_key_file")
        made = self._vault.file.add(key)
        failpoints.hit("rotate.after_key_file")
        return made

    async def _promote(self, key: str) -> RotationStep:
        """Make the new key the primary one, if every live master has it."""
        await asyncio.to_thread(self._vault.require, {key})
        masters = await self._keys_of_masters()
        without = tuple(sorted(name for name, keys in masters.items() if key not in keys))
        if without:
            did = f"the key {key} is not primary: {len(without)} live masters do not have it"
            return RotationStep(Phase.WAITING, key, did, without_key=without[:_MOST_NAMED])
        async with self._database.unit_of_work() as uow:
            now = await uow.sealing.state(hold="change")
            if now.next == key:
                former = now.primary or await self._first_key()
                others = (*now.old, former) if former != key else now.old
                await uow.sealing.save(replace(now, primary=key, next=None, old=others))
                failpoints.hit("rotate.before_promote")
                await uow.commit()
        failpoints.hit("rotate.after_promote")
        return RotationStep(Phase.WORKING, key, f"the key {key} encrypts from now on")

    async def _encrypt(self, key: str, old: Collection[str]) -> RotationStep:
        """Encrypt some values anew; if none is left, retire the old keys."""
        unreadable: list[Sealed] = []
        made: list[tuple[Sealed, str]] = []
        while not made:
            async with self._database.unit_of_work(read_only=True) as uow:
                found = await uow.sealing.not_with(key, unreadable, self._together)
            if not found:
                break
            made = await asyncio.to_thread(self._made_anew, found, key, unreadable)
        if made:
            return await self._store(key, made)
        if unreadable:
            names = tuple(f"{one.project}/{one.name}" for one in unreadable[:_MOST_NAMED])
            did = f"{len(unreadable)} values cannot be decrypted; set them again, or delete them"
            return RotationStep(Phase.STUCK, key, did, unreadable=names)
        return await self._retire(key, old)

    def _made_anew(
        self, found: Collection[Sealed], key: str, unreadable: list[Sealed]
    ) -> list[tuple[Sealed, str]]:
        made = []
        for one in found:
            bound = password_of_source(one.name) if one.is_password else one.name
            try:
                value = self._vault.open(one.project, bound, one.ciphertext)
            except VaultError as error:
                log.warning("value not decrypted", error=str(error))
                unreadable.append(one)
                continue
            made.append((one, self._vault.seal(one.project, bound, value, key)))
        return made

    async def _store(self, key: str, made: Collection[tuple[Sealed, str]]) -> RotationStep:
        """Store what was encrypted anew, but what was set or deleted meanwhile."""
        stored = 0
        async with self._database.unit_of_work() as uow:
            if await uow.sealing.holds(key):
                for one, ciphertext in made:
                    stored += await uow.sealing.replace(one, ciphertext)
                failpoints.hit("rotate.before_store")
                await uow.commit()
        failpoints.hit("rotate.after_store")
        return RotationStep(Phase.WORKING, key, f"{stored} values are encrypted anew", stored)

    async def _retire(self, key: str, old: Collection[str]) -> RotationStep:
        async with self._database.unit_of_work() as uow:
            now = await uow.sealing.state(hold="change")
            # No process stores with an old key from now on: each holds the state while it stores.
            if now.primary != key or await uow.sealing.not_with(key, (), 1):
                return RotationStep(Phase.WORKING, key, "something was stored meanwhile")
            retired = (*now.retired, *(one for one in now.old if one not in now.retired))
            await uow.sealing.save(replace(now, old=(), retired=retired))
            failpoints.hit("rotate.before_retire")
            await uow.commit()
        failpoints.hit("rotate.after_retire")
        gone = await asyncio.to_thread(self._vault.file.retire, old)
        failpoints.hit("rotate.after_key_files")
        did = f"no secret uses {', '.join(old)} any longer"
        return RotationStep(Phase.DONE, key, did, retired=tuple(gone))

    async def _first_key(self) -> str:
        return await asyncio.to_thread(self._vault.first_key)

    async def _keys_of_masters(self) -> dict[str, tuple[str, ...]]:
        found = {}
        for name, member in (await self._masters.refresh()).items():
            keys = member.data.get(KEYS)
            known = keys if isinstance(keys, list) else []
            found[str(name)] = tuple(str(one) for one in known)
        return found
