"""Encrypts secrets at rest, and decrypts them.

The API encrypts, masters decrypt when they give a worker its payload; the database holds
ciphertext alone. AES-256-GCM with a random nonce for each value. A ciphertext says which key it
was made with, and is bound to that key, to its project and to its name: a writer to the database
cannot pass one secret off as another. An older value of the same secret would be accepted.
"""

import base64
import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shoal.runtime.key_file import (
    KeyFile,
    KeyFileOpen,
    NoSecretsKey,
    VaultError,
    create_key,
    key_id,
)
from shoal.runtime.settings import ClusterSettings

__all__ = [
    "KeyFileOpen",
    "NoSecretsKey",
    "UnknownVaultKey",
    "Vault",
    "VaultError",
    "WrongSecretsKey",
    "create_key",
    "key_id",
    "key_of",
    "password_of_source",
]

_NONCE_BYTES = 12
_VERSION = "2:"  # of the encryption; in front of each ciphertext, then KEY:
_FIRST = "1:"  # before there were several keys
_OF_SOURCE = "data-source/"  # no secret's name has a slash


class UnknownVaultKey(VaultError):
    """A key is not in the file of this machine."""

    def __init__(self, key: str, file: Path) -> None:
        self.key, self.file = key, file
        super().__init__(
            f"the key {key} of the secrets is not in {file}; copy its line from that file on a "
            "machine that has it: `shoal secrets keys` says which masters do"
        )


class WrongSecretsKey(VaultError):
    """A secret cannot be decrypted."""

    def __init__(self, project: str, name: str, file: Path, key: str = "") -> None:
        self.project, self.name, self.file = project, name, file
        is_password = name.startswith(_OF_SOURCE)
        what = f"password of the data source {_source(name)}" if is_password else f"secret {name}"
        super().__init__(
            f"the {what} of project {project} was encrypted with another key{key and f' ({key})'} "
            f"than those in {file}; bring the right key file back, or set the "
            f"{'password' if is_password else 'secret'} again"
        )


class Vault:
    """Encrypts and decrypts with the keys in one file, which is read at the first use."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self.file = KeyFile(key_file)
        # What has been read stays usable until the process ends: a payload may be under way.
        self._ciphers: dict[str, AESGCM] = {}

    @classmethod
    def of(cls, cluster: ClusterSettings) -> "Vault":
        """Return the vault with the key file that the settings name."""
        return cls(cluster.secrets_key_file)

    def first_key(self) -> str:
        """Return the id of the key that a cluster begins with. Raises NoSecretsKey."""
        return next(iter(self._known()))

    def seal(self, project: str, name: str, value: str, key: str | None = None) -> str:
        """Return the ciphertext of a secret, made with a key; None: the first one.

        Blocks for the key file. Raises NoSecretsKey, UnknownKey.
        """
        known = self._known()
        key = next(iter(known)) if key is None else key
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher(key).encrypt(nonce, value.encode(), _bound_to(key, project, name))
        return f"{_VERSION}{key}:{base64.b64encode(nonce + sealed).decode()}"

    def open(self, project: str, name: str, ciphertext: str) -> str:
        """Return the value of a secret. Raises NoSecretsKey, UnknownKey, WrongSecretsKey."""
        known = self._known()
        if ciphertext.startswith(_FIRST):
            attempts = [(key, f"{project}/{name}".encode()) for key in known]
            encoded = ciphertext.removeprefix(_FIRST)
        else:
            version, key, encoded = (*ciphertext.split(":", 2), "", "")[:3]
            if f"{version}:" != _VERSION or not key:  # made by a newer version of Shoal
                raise WrongSecretsKey(project, name, self._key_file)
            attempts = [(key, _bound_to(key, project, name))]
        for key, bound in attempts:
            try:
                content = base64.b64decode(encoded, validate=True)
                nonce, sealed = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
                return self._cipher(key).decrypt(nonce, sealed, bound).decode()
            except UnknownVaultKey as error:
                raise WrongSecretsKey(project, name, self._key_file, key) from error
            except (InvalidTag, ValueError):
                continue
        raise WrongSecretsKey(project, name, self._key_file)

    def ids(self) -> list[str]:
        """Return the ids of the keys that are here; none if the file cannot be used."""
        try:
            return list(self._known())
        except VaultError:
            return []

    def require(self, keys: set[str]) -> None:
        """Return if all these keys are here. Raises NoSecretsKey, UnknownKey."""
        if missing := sorted(keys - self._known().keys()):
            raise UnknownVaultKey(missing[0], self._key_file)

    def _known(self) -> dict[str, AESGCM]:
        """Return what is in the file; if that is gone, what was in it."""
        try:
            found = self.file.keys()
        except NoSecretsKey:
            if not self._ciphers:
                raise
            return self._ciphers
        for key, content in found.items():
            if key not in self._ciphers:
                self._ciphers[key] = AESGCM(content)
        return {key: self._ciphers[key] for key in found}

    def _cipher(self, key: str) -> AESGCM:
        try:
            return self._ciphers[key]
        except KeyError:
            raise UnknownVaultKey(key, self._key_file) from None


def is_ciphertext(text: object) -> bool:
    """Say whether a text begins as a ciphertext does: what is stored may be junk."""
    return isinstance(text, str) and text.startswith((_FIRST, _VERSION))


def key_of(ciphertext: str) -> str | None:
    """Return the id of the key of a ciphertext; None: it was made before keys had ids."""
    version, _, rest = ciphertext.partition(":")
    return rest.partition(":")[0] if f"{version}:" == _VERSION else None


def password_of_source(name: str) -> str:
    """Return the name under which the password of a data source is encrypted."""
    return _OF_SOURCE + name


def _source(password: str) -> str:
    return password.removeprefix(_OF_SOURCE)


def _bound_to(key: str, project: str, name: str) -> bytes:
    # Neither a key's id nor a project's name has a slash in it.
    return f"2/{key}/{project}/{name}".encode()
