"""Parameters and secrets of projects over REST."""

from typing import cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part
from shoal.client.rest.types import ParameterJson, SecretJson, SecretTestJson


class ValueCalls:
    """The part of ``ShoalClient`` about what a project's workflows share."""

    _connection: Connection

    def project_parameters(self, project: str) -> dict[str, str]:
        """Return the definitions of a project's parameters."""
        path = f"/projects/{part(project)}/parameters"
        return {one["name"]: one["value"] for one in self._connection.pages(path, {})}

    def put_project_parameter(self, project: str, name: str, value: str) -> ParameterJson:
        """Set one parameter of a project; return it."""
        path = f"/projects/{part(project)}/parameters/{part(name)}"
        answer = self._connection.put_in(project, path, json={"value": value})
        return cast(ParameterJson, answer)

    def delete_project_parameter(self, project: str, name: str) -> None:
        """Remove one parameter of a project."""
        self._connection.request("DELETE", f"/projects/{part(project)}/parameters/{part(name)}")

    def secrets(self, project: str) -> list[SecretJson]:
        """Return the names and ages of a project's secrets; their values cannot be read."""
        path = f"/projects/{part(project)}/secrets"
        return cast("list[SecretJson]", list(self._connection.pages(path, {})))

    def put_secret(self, project: str, name: str, value: str) -> SecretJson:
        """Set a secret."""
        path = f"/projects/{part(project)}/secrets/{part(name)}"
        return cast(SecretJson, self._connection.put_in(project, path, json={"value": value}))

    def refer_secret(self, project: str, name: str, reference: str) -> SecretJson:
        """Set where a secret is kept: ``STORE:PATH#FIELD``."""
        path = f"/projects/{part(project)}/secrets/{part(name)}"
        body = {"reference": reference}
        return cast(SecretJson, self._connection.put_in(project, path, json=body))

    def test_secret(self, project: str, name: str) -> SecretTestJson:
        """Try whether a secret could be given to a task now; its value cannot be read."""
        path = f"/projects/{part(project)}/secrets/{part(name)}/test"
        return cast(SecretTestJson, self._connection.json("POST", path))

    def delete_secret(self, project: str, name: str) -> None:
        """Delete a secret; tasks that refer to it fail from now on."""
        self._connection.request("DELETE", f"/projects/{part(project)}/secrets/{part(name)}")
