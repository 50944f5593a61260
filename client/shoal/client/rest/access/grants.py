"""Grants of projects over REST: what the tasks of other projects may do with them."""

from collections.abc import Collection
from typing import cast

from shoal.client.rest.access.types import GrantJson, GrantName, ResourceGrantJson
from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part


class GrantCalls:
    """The part of ``ShoalClient`` about grants between projects, for owners of the giving one."""

    _connection: Connection

    def grants(self, project: str) -> list[GrantJson]:
        """Return what a project lets others do; of ``project`` "*": every project."""
        path = f"/projects/{part(project)}/grants"
        return cast("list[GrantJson]", list(self._connection.pages(path, {})))

    def put_grant(self, project: str, taker: str, what: GrantName) -> GrantJson:
        """Let the tasks of ``taker`` do something, instead of what they may now."""
        path = _path(project, taker)
        return cast(GrantJson, self._connection.json("PUT", path, json={"what": what}))

    def remove_grant(self, project: str, taker: str) -> None:
        """Let the tasks of ``taker`` do nothing any more."""
        self._connection.request("DELETE", _path(project, taker))

    def resource_grants(self, project: str) -> list[ResourceGrantJson]:
        """Return which files a project shares; with ``project`` "*": with every project."""
        path = f"/projects/{part(project)}/resource-grants"
        return cast("list[ResourceGrantJson]", list(self._connection.pages(path, {})))

    def put_resource_grant(
        self, project: str, taker: str, paths: Collection[str]
    ) -> ResourceGrantJson:
        """Let the tasks of ``taker`` use these files and folders ("lib/"), and no others."""
        path = _path(project, taker, "resource-grants")
        answer = self._connection.json("PUT", path, json={"paths": [*paths]})
        return cast(ResourceGrantJson, answer)

    def remove_resource_grant(self, project: str, taker: str) -> None:
        """Let the tasks of ``taker`` use no files any more."""
        self._connection.request("DELETE", _path(project, taker, "resource-grants"))


def _path(project: str, taker: str, what: str = "grants") -> str:
    return f"/projects/{part(project)}/{what}/{part(taker)}"
