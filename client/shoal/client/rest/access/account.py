"""One's own account over REST: the password, sessions, tokens."""

from collections.abc import Sequence
from typing import Any, cast

from shoal.client.rest.access.types import MeJson, NewTokenJson, SessionJson, TokenJson
from shoal.client.rest.connection import Connection

TOKEN_DAYS = 90  # until a token expires, unless something else is said


class AccountCalls:
    """The part of ``ShoalClient`` about who asks."""

    _connection: Connection

    def me(self) -> MeJson:
        """Return who asks, its roles, and what its token is limited to."""
        return cast(MeJson, self._connection.get("/me"))

    def new_sign_in_code(self) -> str:
        """Return a code that a browser signs in with, once. For the token of a data folder."""
        answer = self._connection.json("POST", "/sign-in-codes", repeat=False)
        return cast(str, answer["code"])

    def change_password(self, current: str, new: str, *, keep_tokens: bool = False) -> None:
        """Change one's password. All other sessions end, and all tokens unless they are kept."""
        body = {"current": current, "new": new, "keep_tokens": keep_tokens}
        self._connection.request("PUT", "/me/password", json=body, repeat=False)

    def sessions(self) -> list[SessionJson]:
        """Return one's sessions, the newest first."""
        return cast("list[SessionJson]", list(self._connection.pages("/me/sessions", {})))

    def end_session(self, session_id: int) -> None:
        """End a session of one's own."""
        self._connection.request("DELETE", f"/me/sessions/{session_id:d}")

    def tokens(self) -> list[TokenJson]:
        """Return one's tokens without their texts, the newest first."""
        return cast("list[TokenJson]", list(self._connection.pages("/me/tokens", {})))

    def add_token(
        self,
        name: str,
        *,
        permissions: Sequence[str] | None = None,
        projects: Sequence[str] | None = None,
        days: int | None = TOKEN_DAYS,
    ) -> NewTokenJson:
        """Make a token; ``days`` None: it does not expire. Only a session may do it."""
        body = token_body(name, permissions, projects, days)
        answer = self._connection.json("POST", "/me/tokens", json=body, repeat=False)
        return cast(NewTokenJson, answer)

    def revoke_token(self, token_id: int) -> None:
        """Revoke a token of one's own, perhaps the one that asks."""
        self._connection.request("DELETE", f"/me/tokens/{token_id:d}")


def token_body(
    name: str, permissions: Sequence[str] | None, projects: Sequence[str] | None, days: int | None
) -> dict[str, Any]:
    """Return what makes a token; None: no limit."""
    return {
        "name": name,
        "permissions": None if permissions is None else list(permissions),
        "projects": None if projects is None else list(projects),
        "days": days,
    }
