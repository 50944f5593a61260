"""Service accounts of projects over REST.

``name`` is the part behind the slash: PROJECT/NAME is what the account is called elsewhere.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from shoal.client.rest.access.account import TOKEN_DAYS, token_body
from shoal.client.rest.access.types import AccountJson, NewTokenJson, RoleName, TokenJson
from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part


class ServiceAccountCalls:
    """The part of ``ShoalClient`` about programs that sign in, for owners of projects."""

    _connection: Connection

    def service_accounts(self, project: str) -> Iterator[AccountJson]:
        """Yield the service accounts of a project by name, disabled ones too."""
        return cast("Iterator[AccountJson]", self._connection.pages(_accounts(project), {}))

    def add_service_account(self, project: str, name: str, role: RoleName) -> AccountJson:
        """Make a service account with a role in its project."""
        body = {"name": name, "role": role}
        answer = self._connection.json("POST", _accounts(project), json=body, repeat=False)
        return cast(AccountJson, answer)

    def disable_service_account(self, project: str, name: str) -> None:
        """Disable a service account for ever; its tokens are worthless from now on."""
        self._connection.request("DELETE", _path(project, name))

    def service_account_tokens(self, project: str, name: str) -> list[TokenJson]:
        """Return a service account's tokens without their texts, the newest first."""
        found = self._connection.pages(f"{_path(project, name)}/tokens", {})
        return cast("list[TokenJson]", list(found))

    def add_service_account_token(
        self,
        project: str,
        name: str,
        token: str,
        *,
        permissions: Sequence[str] | None = None,
        projects: Sequence[str] | None = None,
        days: int | None = TOKEN_DAYS,
    ) -> NewTokenJson:
        """Make a token, called ``token``, of a service account; ``days`` None: for ever."""
        path = f"{_path(project, name)}/tokens"
        body = token_body(token, permissions, projects, days)
        return cast(NewTokenJson, self._connection.json("POST", path, json=body, repeat=False))

    def revoke_service_account_token(self, project: str, name: str, token_id: int) -> None:
        """Revoke a token of a service account."""
        self._connection.request("DELETE", f"{_path(project, name)}/tokens/{token_id:d}")


def _accounts(project: str) -> str:
    return f"/projects/{part(project)}/service-accounts"


def _path(project: str, name: str) -> str:
    return f"{_accounts(project)}/{part(name)}"
