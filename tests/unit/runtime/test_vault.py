"""Secrets at rest: what a key opens, and what it does not."""

import base64
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shoal.runtime.vault import (
    KeyFileOpen,
    NoSecretsKey,
    UnknownVaultKey,
    Vault,
    WrongSecretsKey,
    create_key,
    key_of,
    password_of_source,
)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    create_key(tmp_path / "secrets.key")
    return Vault(tmp_path / "secrets.key")


@pytest.mark.parametrize("value", ["hush", "", "ü\n" * 10_000, "\x01'\"`$(x)"])
def test_what_was_sealed_is_opened_again_also_after_a_restart(vault: Vault, value: str) -> None:
    sealed = vault.seal("p", "db", value)
    assert sealed != vault.seal("p", "db", value)  # nobody sees that two are the same
    assert Vault(vault._key_file).open("p", "db", sealed) == value
    assert not value or value not in sealed


def test_ciphertext_is_bound_to_its_project_and_name(vault: Vault) -> None:
    sealed = vault.seal("p", "db", "hush")
    for project, name in (("q", "db"), ("p", "other")):
        with pytest.raises(WrongSecretsKey, match=f"secret {name} of project {project}"):
            vault.open(project, name, sealed)


def test_altered_ciphertext_is_refused(vault: Vault) -> None:
    sealed = vault.seal("p", "db", "hush")
    head, encoded = sealed[: sealed.index(":", 2) + 1], sealed[sealed.index(":", 2) + 1 :]
    content = bytearray(base64.b64decode(encoded))
    for position in (0, 13, len(content) - 1):
        altered = bytearray(content)
        altered[position] ^= 1
        with pytest.raises(WrongSecretsKey):
            vault.open("p", "db", head + base64.b64encode(altered).decode())
    for broken in ("", "1:", "1:!!", "2:", "2::", head, "9:" + sealed[2:], sealed[:20]):
        with pytest.raises(WrongSecretsKey):
            vault.open("p", "db", broken)


def test_another_key_opens_nothing_and_the_error_says_so(vault: Vault, tmp_path: Path) -> None:
    create_key(tmp_path / "other.key")
    with pytest.raises(WrongSecretsKey, match=r"other\.key.*bring the right key file back"):
        Vault(tmp_path / "other.key").open("p", "db", vault.seal("p", "db", "hush"))


def test_missing_or_broken_key_is_an_error_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(NoSecretsKey, match=r"none\.key: No such file.*secrets_key"):
        Vault(tmp_path / "none.key").seal("p", "db", "hush")
    for content in (b"", b"short", b"\xff" * 32, base64.b64encode(b"x" * 31)):
        (tmp_path / "bad.key").write_bytes(content)
        (tmp_path / "bad.key").chmod(0o600)
        with pytest.raises(NoSecretsKey, match="32 bytes in base64"):
            Vault(tmp_path / "bad.key").seal("p", "db", "hush")


def test_key_is_private_and_never_replaced(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "secrets.key"
    create_key(file)
    content = file.read_bytes()
    create_key(file)
    assert file.read_bytes() == content
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["secrets.key"]


def test_password_of_a_data_source_is_no_secret_of_the_same_name(vault: Vault) -> None:
    sealed = vault.seal("p", password_of_source("db"), "hush")
    assert vault.open("p", password_of_source("db"), sealed) == "hush"
    with pytest.raises(
        WrongSecretsKey, match=r"the secret db of project p .* set the secret again"
    ):
        vault.open("p", "db", sealed)
    with pytest.raises(WrongSecretsKey, match=r"password of the data source x .* set the password"):
        vault.open("p", password_of_source("x"), sealed)


# -- several keys -----------------------------------------------------------------------------


def test_ciphertext_of_before_keys_had_ids_is_opened_with_any_key(vault: Vault) -> None:
    key, nonce = base64.b64decode(vault.file.path.read_bytes()), os.urandom(12)
    sealed = nonce + AESGCM(key).encrypt(nonce, b"hush", b"p/db")
    old = "1:" + base64.b64encode(sealed).decode()
    assert key_of(old) is None
    vault.file.add(os.urandom(32))
    assert vault.open("p", "db", old) == "hush"
    with pytest.raises(WrongSecretsKey):
        vault.open("p", "other", old)


def test_key_that_is_added_is_known_at_once_and_encrypts_when_it_is_named(vault: Vault) -> None:
    first = vault.first_key()
    old = vault.seal("p", "db", "hush")
    new_key = Vault(vault.file.path).file.add(os.urandom(32))  # by another process
    assert vault.ids() == [first, new_key]
    new = vault.seal("p", "db", "hush", new_key)
    assert (key_of(old), key_of(new)) == (first, new_key)
    assert vault.open("p", "db", old) == vault.open("p", "db", new) == "hush"
    assert vault.file.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UnknownVaultKey, match="copy its line"):
        vault.seal("p", "db", "hush", "0123456789ab")


def test_ciphertext_says_its_key_and_cannot_say_another(vault: Vault) -> None:
    first, second = vault.first_key(), vault.file.add(os.urandom(32))
    sealed = vault.seal("p", "db", "hush")
    with pytest.raises(WrongSecretsKey):
        vault.open("p", "db", sealed.replace(first, second))


def test_retired_key_is_put_aside_and_opens_what_is_under_way(vault: Vault) -> None:
    first, second = vault.first_key(), vault.file.add(os.urandom(32))
    sealed = vault.seal("p", "db", "hush")
    assert vault.file.retire([first, "unknown"]) == [first]
    assert vault.ids() == [second]
    assert vault.open("p", "db", sealed) == "hush"
    with pytest.raises(WrongSecretsKey, match=first):
        Vault(vault.file.path).open("p", "db", sealed)
    aside = vault.file.path.with_name("secrets.key.retired")
    assert aside.stat().st_mode & 0o777 == 0o600
    assert Vault(aside).open("p", "db", sealed) == "hush"


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o601])
def test_keys_that_others_may_read_are_not_used(vault: Vault, mode: int) -> None:
    vault.file.path.chmod(mode)
    with pytest.raises(KeyFileOpen, match="chmod 600"):
        vault.seal("p", "db", "hush")
    assert vault.ids() == []
    vault.file.path.chmod(0o440)
    assert vault.seal("p", "db", "hush")


def test_missing_keys_are_named(vault: Vault) -> None:
    vault.require({vault.first_key()})
    with pytest.raises(UnknownVaultKey, match="0123456789ab"):
        vault.require({vault.first_key(), "0123456789ab"})


def test_file_that_is_gone_stops_nothing_that_runs(vault: Vault) -> None:
    sealed = vault.seal("p", "db", "hush")
    vault.file.path.unlink()
    assert vault.open("p", "db", sealed) == "hush"
