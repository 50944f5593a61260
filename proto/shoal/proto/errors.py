"""Errors of calls between Shoal's processes.

::

    ShoalError
    └── RpcError
        ├── PeerUnavailable   no answer in time; may work later (retriable)
        ├── PeerRefused       the peer answered with an error
        └── InvalidIdentity   TLS files are missing, unreadable or expired
"""

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
