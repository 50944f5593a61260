"""Environments over REST."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part
from shoal.client.rest.types import EnvironmentDetailJson, EnvironmentJson


class EnvironmentCalls:
    """The part of ``ShoalClient`` about what programs of tasks find around them."""

    _connection: Connection

    def environments(self) -> Iterator[EnvironmentJson]:
        """Yield all environments by name."""
        return cast("Iterator[EnvironmentJson]", self._connection.pages("/environments", {}))

    def environment(self, name: str) -> EnvironmentDetailJson:
        """Return one environment, and the workflows that name it."""
        return cast(EnvironmentDetailJson, self._connection.get(_path(name)))

    def put_environment(self, name: str, definition: Mapping[str, Any]) -> EnvironmentJson:
        """Make or replace an environment: description, variables, python, setup, worker_groups."""
        body = dict(definition)
        return cast(EnvironmentJson, self._connection.json("PUT", _path(name), json=body))

    def delete_environment(self, name: str) -> None:
        """Delete an environment; refused while the newest version of a workflow names it."""
        self._connection.request("DELETE", _path(name))


def _path(name: str) -> str:
    return f"/environments/{part(name)}"
