"""Concurrency groups over REST."""

from collections.abc import Iterator
from typing import cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part
from shoal.client.rest.types import ConcurrencyGroupDetailJson, ConcurrencyGroupJson


class ConcurrencyCalls:
    """The part of ``ShoalClient`` about how many tasks may be at work at once."""

    _connection: Connection

    def concurrency_groups(self, project: str) -> Iterator[ConcurrencyGroupJson]:
        """Yield the concurrency groups of a project by name."""
        path = f"/projects/{part(project)}/concurrency-groups"
        return cast("Iterator[ConcurrencyGroupJson]", self._connection.pages(path, {}))

    def concurrency_group(self, project: str, name: str) -> ConcurrencyGroupDetailJson:
        """Return one group with the attempts that have its slots and those that wait."""
        return cast(ConcurrencyGroupDetailJson, self._connection.get(_path(project, name)))

    def put_concurrency_group(
        self, project: str, name: str, slots: int, description: str = ""
    ) -> ConcurrencyGroupJson:
        """Make a group or change its slots, at once; fewer of them end nothing."""
        body = {"slots": slots, "description": description}
        return cast(
            ConcurrencyGroupJson, self._connection.put_in(project, _path(project, name), json=body)
        )

    def delete_concurrency_group(self, project: str, name: str) -> None:
        """Delete a group; refused while anybody needs it."""
        self._connection.request("DELETE", _path(project, name))


def _path(project: str, name: str) -> str:
    return f"/projects/{part(project)}/concurrency-groups/{part(name)}"
