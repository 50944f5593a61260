"""Users over REST."""

from collections.abc import Iterator
from typing import Any, cast

from shoal.client.rest.access.types import AccountJson, NewUserJson, TokenJson
from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part


class UserCalls:
    """The part of ``ShoalClient`` about users, for administrators."""

    _connection: Connection

    def users(self) -> Iterator[AccountJson]:
        """Yield all users by name, disabled ones too."""
        return cast("Iterator[AccountJson]", self._connection.pages("/users", {}))

    def user(self, name: str) -> AccountJson:
        """Return one user."""
        return cast(AccountJson, self._connection.get(_path(name)))

    def add_user(
        self, name: str, *, full_name: str = "", is_admin: bool = False, password: str | None = None
    ) -> NewUserJson:
        """Make a user. Without a password the answer holds one that was made.

        It is sent once: if the answer is lost, ``user`` says whether the user is there, and
        ``reset_password`` gives another password.
        """
        body = {"name": name, "full_name": full_name, "is_admin": is_admin, "password": password}
        answer = self._connection.json("POST", "/users", json=body, repeat=False)
        return cast(NewUserJson, answer)

    def change_user(
        self,
        name: str,
        *,
        full_name: str | None = None,
        is_admin: bool | None = None,
        disabled: bool | None = None,
    ) -> AccountJson:
        """Change what is given of a user; None: it stays."""
        given = {"full_name": full_name, "is_admin": is_admin, "disabled": disabled}
        body: dict[str, Any] = {key: one for key, one in given.items() if one is not None}
        return cast(AccountJson, self._connection.json("PATCH", _path(name), json=body))

    def reset_password(self, name: str) -> NewUserJson:
        """Give a user another password, which the answer holds; sessions and tokens end."""
        path = f"{_path(name)}/password-reset"
        return cast(NewUserJson, self._connection.json("POST", path))

    def link_user(self, name: str, issuer: str, subject: str) -> AccountJson:
        """Let a user sign in at a provider or a directory, as who is ``subject`` there."""
        body = {"issuer": issuer, "subject": subject}
        return cast(AccountJson, self._connection.json("PUT", f"{_path(name)}/identity", json=body))

    def unlink_user(self, name: str) -> None:
        """Let a user not sign in elsewhere any more; sessions and tokens end."""
        self._connection.request("DELETE", f"{_path(name)}/identity")

    def user_tokens(self, name: str) -> list[TokenJson]:
        """Return a user's tokens without their texts, the newest first."""
        return cast("list[TokenJson]", list(self._connection.pages(f"{_path(name)}/tokens", {})))

    def revoke_user_token(self, name: str, token_id: int) -> None:
        """Revoke a token of a user."""
        self._connection.request("DELETE", f"{_path(name)}/tokens/{token_id:d}")


def _path(name: str) -> str:
    return f"/users/{part(name)}"
