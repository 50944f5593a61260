"""Drafts over REST, and what would become of them."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part, workflow_path
from shoal.client.rest.types import PublishJson
from shoal.client.rest.workflows.types import DraftDetailJson, DraftJson, PlanJson, ValidationJson


class DraftCalls:
    """The part of ``ShoalClient`` about what is not published yet.

    ``etag``: that of the draft as it was read, so that nothing is lost that somebody has saved
    since. Raises ApiProblem (412) then.
    """

    _connection: Connection

    def drafts(self, project: str, name: str | None = None) -> Iterator[DraftJson]:
        """Yield the drafts of a project, or of one of its workflows."""
        path = f"/projects/{part(project)}/drafts"
        return cast("Iterator[DraftJson]", self._connection.pages(path, {"name": name}))

    def draft(self, project: str, name: str, editor: str | None = None) -> DraftDetailJson:
        """Return one's own draft of a workflow, or that of somebody else."""
        path = f"{workflow_path(project, name)}/draft"
        return _with_etag(self._connection.request("GET", path, {"editor": editor}))

    def put_draft(
        self,
        project: str,
        name: str,
        text: str,
        *,
        etag: str | None = None,
        base_version: int | None = None,
    ) -> DraftDetailJson:
        """Save one's own draft; without ``etag`` only if there is none yet."""
        body = {"text": text, "base_version": base_version}
        headers = {"If-None-Match": "*"} if etag is None else {"If-Match": etag}
        path = f"{workflow_path(project, name)}/draft"
        # Not repeated: a second try would find what the first one has saved.
        return _with_etag(
            self._connection.request("PUT", path, json=body, headers=headers, repeat=False)
        )

    def delete_draft(self, project: str, name: str, etag: str) -> None:
        """Discard one's own draft."""
        path = f"{workflow_path(project, name)}/draft"
        self._connection.request("DELETE", path, headers={"If-Match": etag}, repeat=False)

    def publish_draft(self, project: str, name: str, etag: str) -> PublishJson:
        """Publish one's own draft, which is deleted then."""
        path = f"{workflow_path(project, name)}/draft/publish"
        headers = {"If-Match": etag}
        answer = self._connection.json("POST", path, headers=headers, repeat=False)
        return cast(PublishJson, answer)

    def validate(
        self, project: str, name: str, definition: str | Mapping[str, Any]
    ) -> ValidationJson:
        """Return all that is wrong with a definition, which may be a text of YAML."""
        path = f"{workflow_path(project, name)}/validate"
        return cast(ValidationJson, self._connection.json("POST", path, json=_body(definition)))

    def plan(self, project: str, name: str, definition: str | Mapping[str, Any]) -> PlanJson:
        """Return what publishing a definition would do."""
        path = f"{workflow_path(project, name)}/plan"
        return cast(PlanJson, self._connection.json("POST", path, json=_body(definition)))


def _body(definition: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(definition, str):
        return {"text": definition}
    return {"definition": dict(definition)}


def _with_etag(response: Any) -> DraftDetailJson:
    return cast(DraftDetailJson, {**response.json(), "etag": response.headers["ETag"]})
