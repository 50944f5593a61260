"""A master takes no work if it cannot decrypt what its tasks may need."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shoal.master.main import require_keys
from shoal.runtime.vault import KeyFileOpen, NoSecretsKey, UnknownVaultKey, Vault, create_key
from shoal.sql import Database

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def vault(folder: Path, name: str) -> Vault:
    create_key(folder / name)
    return Vault(folder / name)


async def store(database: Database, ciphertext: str) -> None:
    async with database.unit_of_work() as uow:
        await uow.projects.ensure("p", NOW)
        await uow.secrets.put("p", "db", ciphertext, NOW)
        await uow.commit()


async def test_master_needs_no_key_while_nothing_is_encrypted(
    sqlite_url: str, tmp_path: Path
) -> None:
    async with Database(sqlite_url) as database:
        await require_keys(database, Vault(tmp_path / "none"))


async def test_master_without_the_key_does_not_start(sqlite_url: str, tmp_path: Path) -> None:
    ours, other = vault(tmp_path, "ours"), vault(tmp_path, "other")
    async with Database(sqlite_url) as database:
        await store(database, ours.seal("p", "db", "hush"))
        await require_keys(database, ours)
        with pytest.raises(UnknownVaultKey, match=ours.first_key()):
            await require_keys(database, other)
        with pytest.raises(NoSecretsKey, match="secrets_key"):
            await require_keys(database, Vault(tmp_path / "none"))
        ours.file.path.chmod(0o644)
        with pytest.raises(KeyFileOpen, match="chmod"):
            await require_keys(database, Vault(ours.file.path))


async def test_master_without_any_key_does_not_start_on_secrets_of_before_keys_had_ids(
    sqlite_url: str, tmp_path: Path
) -> None:
    async with Database(sqlite_url) as database:
        await store(database, "1:AAAA")
        await require_keys(database, vault(tmp_path, "ours"))
        with pytest.raises(NoSecretsKey):
            await require_keys(database, Vault(tmp_path / "none"))


async def test_master_starts_beside_junk_where_a_ciphertext_should_be(
    sqlite_url: str, tmp_path: Path
) -> None:
    async with Database(sqlite_url) as database:
        await store(database, "x")
        await require_keys(database, Vault(tmp_path / "none"))


async def test_master_without_the_key_that_comes_next_does_not_start(
    sqlite_url: str, tmp_path: Path
) -> None:
    ours = vault(tmp_path, "ours")
    key = ours.file.add(os.urandom(32))
    async with Database(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            state = await uow.sealing.state(hold="change")
            await uow.sealing.save(type(state)(None, key, (), ()))
            await uow.commit()
        await require_keys(database, ours)
        with pytest.raises(UnknownVaultKey, match=key):
            await require_keys(database, vault(tmp_path, "other"))
