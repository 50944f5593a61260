"""What can be wrong with a secret that is kept in another store.

::

    SecretStoreError
    ├── InvalidReference    it can be none, or the project may not read there
    ├── SecretRefused       the store has answered: no such thing, or not for us
    └── StoreUnavailable    the store gives no answer now; the same may work later
        └── StoreGivenUp    it has given none for too long: the attempt fails

No text holds a value, a token, or what a store has written.
"""

from shoal.core.errors import ShoalError


class SecretStoreError(ShoalError):
    """A secret cannot be read from its store."""


class InvalidReference(SecretStoreError):
    """A text is not a reference that this project may have. Nothing was asked."""


class SecretRefused(SecretStoreError):
    """A store has no such secret, does not give it, or gives what is none."""


class StoreUnavailable(SecretStoreError):
    """A store gives no answer now. ``pause_s``: it has asked to be left alone for so long."""

    retriable = True

    def __init__(self, text: str, pause_s: float = 0.0) -> None:
        self.pause_s = pause_s
        super().__init__(text)


class StoreGivenUp(StoreUnavailable):
    """A store has given no answer for longer than an attempt waits for it."""

    retriable = False
