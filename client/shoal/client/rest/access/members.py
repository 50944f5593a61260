"""Members of projects over REST: who has which role."""

from typing import cast

from shoal.client.rest.access.types import HolderName, MemberJson, RoleName
from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part


class MemberCalls:
    """The part of ``ShoalClient`` about roles in projects, for their owners."""

    _connection: Connection

    def members(self, project: str) -> list[MemberJson]:
        """Return who has a role in a project, by kind and name."""
        path = f"/projects/{part(project)}/members"
        return cast("list[MemberJson]", list(self._connection.pages(path, {})))

    def put_member(self, project: str, kind: HolderName, name: str, role: RoleName) -> MemberJson:
        """Give a role, instead of the one that there may be."""
        path = _path(project, kind, name)
        return cast(MemberJson, self._connection.json("PUT", path, json={"role": role}))

    def remove_member(self, project: str, kind: HolderName, name: str) -> None:
        """Take a role away."""
        self._connection.request("DELETE", _path(project, kind, name))


def _path(project: str, kind: str, name: str) -> str:
    return f"/projects/{part(project)}/members/{part(kind)}/{part(name)}"
