"""The keys of the secrets over REST."""

from typing import Literal, TypedDict, cast

from shoal.client.rest.connection import Connection


class SecretsKeysJson(TypedDict):
    primary: str
    next: str | None
    old: list[str]
    retired: list[str]
    here: list[str]
    masters: dict[str, list[str]]
    used: dict[str, int]


class RotationJson(TypedDict):
    phase: Literal["waiting", "working", "stuck", "done"]
    key: str
    did: str
    encrypted: int
    without_key: list[str]
    unreadable: list[str]
    retired: list[str]


class KeyCalls:
    """The part of ``ShoalClient`` about the keys that encrypt secrets, for administrators."""

    _connection: Connection

    def secrets_keys(self) -> SecretsKeysJson:
        """Return which keys there are, by their ids."""
        return cast(SecretsKeysJson, self._connection.get("/secrets-keys"))

    def rotate_secrets(self, *, begin: bool) -> RotationJson:
        """Take a step of a rotation; ``begin`` one if none has begun.

        Repeat it with ``begin`` False until the phase is not "working".
        """
        body = {"begin": begin}
        answer = self._connection.json("POST", "/secrets-keys/rotation", json=body)
        return cast(RotationJson, answer)
