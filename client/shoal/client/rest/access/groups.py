"""Groups of users and service accounts over REST."""

from collections.abc import Iterator
from typing import cast

from shoal.client.rest.access.types import PrincipalGroupJson
from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part


class GroupCalls:
    """The part of ``ShoalClient`` about groups of principals, for administrators."""

    _connection: Connection

    def groups(self) -> Iterator[PrincipalGroupJson]:
        """Yield groups by name, with their members."""
        return cast("Iterator[PrincipalGroupJson]", self._connection.pages("/groups", {}))

    def group(self, name: str) -> PrincipalGroupJson:
        """Return one group with its members."""
        return cast(PrincipalGroupJson, self._connection.get(_path(name)))

    def add_group(self, name: str, description: str = "") -> PrincipalGroupJson:
        """Make a group without members."""
        body = {"name": name, "description": description}
        answer = self._connection.json("POST", "/groups", json=body, repeat=False)
        return cast(PrincipalGroupJson, answer)

    def describe_group(self, name: str, description: str) -> PrincipalGroupJson:
        """Change what a group is for."""
        body = {"description": description}
        return cast(PrincipalGroupJson, self._connection.json("PATCH", _path(name), json=body))

    def delete_group(self, name: str) -> None:
        """Delete a group; its members lose the roles that they had by it."""
        self._connection.request("DELETE", _path(name))

    def add_group_member(self, name: str, member: str) -> PrincipalGroupJson:
        """Put a user or a service account (PROJECT/NAME) into a group."""
        path = f"{_path(name)}/members/{part(member)}"
        return cast(PrincipalGroupJson, self._connection.json("PUT", path))

    def remove_group_member(self, name: str, member: str) -> None:
        """Take a user or a service account out of a group."""
        self._connection.request("DELETE", f"{_path(name)}/members/{part(member)}")


def _path(name: str) -> str:
    return f"/groups/{part(name)}"
