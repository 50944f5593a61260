"""Secrets at rest: what a key opens, and what it does not."""

import base64
from pathlib import Path

import pytest

from shoal.runtime.vault import (
    NoSecretsKey,
    Vault,
    WrongSecretsKey,
    create_key,
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
    content = bytearray(base64.b64decode(sealed[2:]))
    for position in (0, 13, len(content) - 1):
        altered = bytearray(content)
        altered[position] ^= 1
        with pytest.raises(WrongSecretsKey):
            vault.open("p", "db", "1:" + base64.b64encode(altered).decode())
    for broken in ("", "1:", "1:!!", "9:" + sealed[2:], sealed[:20]):
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
