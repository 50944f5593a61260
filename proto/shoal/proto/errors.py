"""Errors of calls between Shoal's processes.

::

    ShoalError
    └── RpcError
        ├── PeerUnavailable   no answer in time; may work later (retriable)
        ├── PeerRefused       the peer answered with an error
        └── InvalidIdentity   TLS files are missing, unreadable or expired
    └── VaultError
        ├── NoSecretsKey      the key file is missing or unusable
        └── WrongSecretsKey   a secret was encrypted with another key
"""

from pathlib import Path
from typing import ClassVar

from shoal.core.errors import ShoalError


class RpcError(ShoalError):
    """Base of this branch."""


class PeerUnavailable(RpcError):
    """The peer gave no answer: down, unreachable, restarting, or too slow."""

    retriable: ClassVar[bool] = True

    def __init__(self, address: str, detail: str) -> None:
        self.address = address
        super().__init__(f"no answer from {address}: {detail}")


class PeerRefused(RpcError):
    """The peer answered with an error status."""

    def __init__(self, address: str, code: str, detail: str) -> None:
        self.address, self.code, self.detail = address, code, detail
        super().__init__(f"{address} answered {code}: {detail}")


class InvalidIdentity(RpcError):
    """The TLS files of this process cannot be used."""


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
        super().__init__(
            f"the secret {name} of project {project} was encrypted with another key than the one "
            f"in {file}; bring the right key file back, or set the secret again"
        )
