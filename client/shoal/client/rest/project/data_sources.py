"""Data sources over REST."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part
from shoal.client.rest.types import DataSourceJson, DataSourceKindJson, ProbeJson


class DataSourceCalls:
    """The part of ``ShoalClient`` about where tasks find databases and services."""

    _connection: Connection

    def data_source_kinds(self) -> list[DataSourceKindJson]:
        """Return what each kind takes, with the JSON Schema of its options."""
        found = list(self._connection.pages("/data-source-kinds", {}))
        return cast("list[DataSourceKindJson]", found)

    def data_sources(self, project: str) -> Iterator[DataSourceJson]:
        """Yield the data sources of a project by name; their passwords cannot be read."""
        path = f"/projects/{part(project)}/data-sources"
        return cast("Iterator[DataSourceJson]", self._connection.pages(path, {}))

    def data_source(self, project: str, name: str) -> DataSourceJson:
        """Return one data source, without its password."""
        return cast(DataSourceJson, self._connection.get(_path(project, name)))

    def put_data_source(
        self, project: str, name: str, definition: Mapping[str, Any]
    ) -> DataSourceJson:
        """Make or replace a data source: kind, host, port, database, user, options, shared_with.

        Without ``password`` the one that is there stays; None removes it; ``${secret.NAME}`` is
        a secret of the project.
        """
        body = dict(definition)
        return cast(
            DataSourceJson, self._connection.put_in(project, _path(project, name), json=body)
        )

    def test_data_source(
        self, project: str, name: str, group: str, parameters: Mapping[str, str]
    ) -> ProbeJson:
        """Have a worker of a group sign in there; return what it has found."""
        body = {"worker_group": group, "parameters": dict(parameters)}
        path = f"{_path(project, name)}/test"
        return cast(ProbeJson, self._connection.json("POST", path, json=body))

    def delete_data_source(self, project: str, name: str) -> None:
        """Delete a data source; tasks that name it fail from now on."""
        self._connection.request("DELETE", _path(project, name))


def _path(project: str, name: str) -> str:
    return f"/projects/{part(project)}/data-sources/{part(name)}"
