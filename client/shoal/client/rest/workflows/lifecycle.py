"""Versions, names, archive, deletion and exchange of workflows over REST."""

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part, workflow_path
from shoal.client.rest.types import (
    DependencyGraphJson,
    PublishJson,
    VersionDetailJson,
    VersionJson,
    WorkflowJson,
)
from shoal.client.rest.workflows.types import (
    DependenciesJson,
    DiffJson,
    ExportJson,
    HangingJson,
    ImportJson,
    RenameJson,
)

Despite = Literal["runs", "references", "backfills"]


class LifecycleCalls:
    """The part of ``ShoalClient`` about the history of workflows, and what becomes of them."""

    _connection: Connection

    def versions(self, project: str, name: str) -> Iterator[VersionJson]:
        """Yield the versions of a workflow, newest first."""
        path = f"{workflow_path(project, name)}/versions"
        return cast("Iterator[VersionJson]", self._connection.pages(path, {}))

    def version(self, project: str, name: str, version: int) -> VersionDetailJson:
        """Return one version with its definition."""
        return cast(VersionDetailJson, self._connection.get(_version(project, name, version)))

    def diff(self, project: str, name: str, version: int, base: int | None = None) -> DiffJson:
        """Return what differs from ``base``, by default the version before."""
        path = f"{_version(project, name, version)}/diff"
        return cast(DiffJson, self._connection.get(path, {"base": base}))

    def restore(
        self, project: str, name: str, version: int, *, dry_run: bool = False
    ) -> PublishJson:
        """Publish an older version again, as a new one."""
        path = f"{_version(project, name, version)}/restore"
        query = {"dry_run": dry_run or None}
        return cast(PublishJson, self._connection.json("POST", path, query))

    def copy_workflow(
        self, source: tuple[str, str], target: tuple[str, str], version: int | None = None
    ) -> PublishJson:
        """Copy a workflow; both are project and name. What is there already is never changed."""
        body = {"project": source[0], "workflow": source[1], "version": version}
        path = f"{workflow_path(*target)}/copy"
        return cast(PublishJson, self._connection.json("POST", path, json=body, repeat=False))

    def rename_workflow(
        self,
        project: str,
        name: str,
        new: str,
        *,
        despite_references: bool = False,
        dry_run: bool = False,
    ) -> RenameJson:
        """Give a workflow another name; refused while others name it, unless asked for."""
        body = {"name": new, "despite": ["references"] if despite_references else []}
        path = f"{workflow_path(project, name)}/rename"
        query = {"dry_run": dry_run or None}
        answer = self._connection.json("POST", path, query, json=body, repeat=False)
        return cast(RenameJson, answer)

    def archive_workflow(self, project: str, name: str) -> WorkflowJson:
        """Have nothing of a workflow start any more."""
        path = f"{workflow_path(project, name)}/archive"
        return cast(WorkflowJson, self._connection.json("POST", path))

    def unarchive_workflow(self, project: str, name: str) -> WorkflowJson:
        """Undo that; its schedules fire from now on."""
        path = f"{workflow_path(project, name)}/unarchive"
        return cast(WorkflowJson, self._connection.json("POST", path))

    def hanging(self, project: str, name: str) -> HangingJson:
        """Return what hangs on a workflow: to be looked at before it is deleted."""
        return cast(HangingJson, self._connection.get(f"{workflow_path(project, name)}/hanging"))

    def delete_workflow(self, project: str, name: str, despite: Collection[Despite] = ()) -> None:
        """Delete a workflow; refused while something hangs on it, but for ``despite``."""
        query = {"despite": sorted(despite)}
        self._connection.request("DELETE", workflow_path(project, name), query)

    def dependencies(self, project: str, name: str) -> DependenciesJson:
        """Return the workflows that one names, and those that name it."""
        path = f"{workflow_path(project, name)}/dependencies"
        return cast(DependenciesJson, self._connection.get(path))

    def dependency_graph(
        self,
        project: str,
        workflow: str | None = None,
        date: str | None = None,
        hops: int | None = None,
    ) -> DependencyGraphJson:
        """Return what waits for what on a day, YYYY-MM-DD, with the runs that count for it.

        Around a workflow, or around all of the project that are connected.
        """
        path = f"/projects/{part(project)}/dependency-graph"
        query = {"workflow": workflow, "date": date, "hops": hops}
        return cast(DependencyGraphJson, self._connection.get(path, query))

    def export_workflows(self, project: str, names: Sequence[str] = ()) -> ExportJson:
        """Return workflows with what they name as documents of YAML; no names: all in use."""
        path = f"/projects/{part(project)}/export"
        return cast(ExportJson, self._connection.get(path, {"name": list(names)}))

    def import_workflows(self, project: str, text: str, *, dry_run: bool = False) -> ImportJson:
        """Store documents of YAML, all or none."""
        path = f"/projects/{part(project)}/import"
        query = {"dry_run": dry_run or None}
        return cast(ImportJson, self._connection.json("POST", path, query, json={"text": text}))


def _version(project: str, name: str, version: int) -> str:
    return f"{workflow_path(project, name)}/versions/{version:d}"
