"""The key that secrets are encrypted with at rest, and what it does.

The API encrypts, masters decrypt when they give a worker its payload; the database holds
ciphertext alone. AES-256-GCM with a random nonce for each value. A ciphertext is bound to its
project and name: a writer to the database cannot pass one secret off as another.
"""

import base64
import binascii
import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shoal.core.errors import ShoalError
from shoal.runtime.settings import ClusterSettings

_KEY_BYTES, _NONCE_BYTES = 32, 12
_VERSION = "1:"  # of the encryption; in front of each ciphertext
_OF_SOURCE = "data-source/"  # no secret's name has a slash


class VaultError(ShoalError):
    """Secrets cannot be encrypted or decrypted."""


class NoSecretsKey(VaultError):
    """There is no key to encrypt or decrypt secrets with."""

    def __init__(self, file: Path, why: str) -> None:
        self.file = file
        super().__init__(
            f"cannot use the key of the secrets in {file}: {why}; `shoal up` makes one in the data "
            "folder; for other clusters make one with `openssl rand -base64 32`, give the file to "
            "every master and API, and name it in the setting secrets_key"
        )


class WrongSecretsKey(VaultError):
    """A secret cannot be decrypted."""

    def __init__(self, project: str, name: str, file: Path) -> None:
        self.project, self.name, self.file = project, name, file
        is_password = name.startswith(_OF_SOURCE)
        what = f"password of the data source {_source(name)}" if is_password else f"secret {name}"
        super().__init__(
            f"the {what} of project {project} was encrypted with another key than the one in "
            f"{file}; bring the right key file back, or set the "
            f"{'password' if is_password else 'secret'} again"
        )


class Vault:
    """Encrypts and decrypts with the key in one file, which is read at the first use."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._cipher: AESGCM | None = None

    @classmethod
    def of(cls, cluster: ClusterSettings) -> "Vault":
        """Return the vault with the key file that the settings name."""
        return cls(cluster.secrets_key_file)

    def seal(self, project: str, name: str, value: str) -> str:
        """Return the ciphertext of a secret. Blocks for the key file. Raises NoSecretsKey."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._key().encrypt(nonce, value.encode(), _bound_to(project, name))
        return _VERSION + base64.b64encode(nonce + sealed).decode()

    def open(self, project: str, name: str, ciphertext: str) -> str:
        """Return the value of a secret. Raises NoSecretsKey, WrongSecretsKey."""
        cipher = self._key()
        try:
            if not ciphertext.startswith(_VERSION):
                raise ValueError("made by a newer version of Shoal")
            content = base64.b64decode(ciphertext.removeprefix(_VERSION), validate=True)
            nonce, sealed = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
            return cipher.decrypt(nonce, sealed, _bound_to(project, name)).decode()
        except (InvalidTag, ValueError) as error:
            raise WrongSecretsKey(project, name, self._key_file) from error

    def _key(self) -> AESGCM:
        if self._cipher is None:
            self._cipher = AESGCM(_read_key(self._key_file))
        return self._cipher


def password_of_source(name: str) -> str:
    """Return the name under which the password of a data source is encrypted."""
    return _OF_SOURCE + name


def _source(password: str) -> str:
    return password.removeprefix(_OF_SOURCE)


def create_key(file: Path) -> None:
    """Make a random key in ``file`` (0600), unless it is there already."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(base64.b64encode(os.urandom(_KEY_BYTES)) + b"\n")
        out.flush()
        os.fsync(out.fileno())
    try:
        os.link(temporary, file)  # never over an existing one: its secrets would be lost
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _read_key(file: Path) -> bytes:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise NoSecretsKey(file, error.strerror or str(error)) from error
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != _KEY_BYTES:
        raise NoSecretsKey(file, f"it does not hold {_KEY_BYTES} bytes in base64")
    return key


def _bound_to(project: str, name: str) -> bytes:
    # No project has a slash in its name, so what is before the first one is the project.
    return f"{project}/{name}".encode()
