"""What is sent for each operation about workflows.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Literal

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def archive_workflow(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[types.WorkflowOut]:
    """Archive a workflow.

    No run of it starts any longer, by schedule, by request or as a sub-workflow.

    What runs goes on, and its history stays. Lists leave it out unless they are asked for it.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/archive",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        repeat=True,
    )


def copy_workflow(project: str, name: str, body: types.CopyIn) -> Call[types.PublishOut]:
    """Make a copy of a workflow.

    Publishes, under the name in the path, what another workflow says, of any project.

    What it names without a project is meant in its own project: what the copy names has to be
    there. A workflow that has the name already is never changed (409).
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/workflows/{part(str(name))}/copy", body=body
    )


def delete_workflow(
    project: str,
    name: str,
    *,
    despite: Sequence[Literal["runs", "references", "backfills"]] | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[None]:
    """Delete a workflow.

    Deletes a workflow and its schedules. Its versions and its instances stay readable.

    Refused while an instance or a backfill has not ended, or another workflow names it, unless
    `despite` says so.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}",
        query={"despite": despite},
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def diff_versions(
    project: str, name: str, version: int, *, base: int | None = None
) -> Call[types.DiffOut]:
    """Compare two versions.

    What has to change in `base` to make it `version`: as a graph, by fields, and as text.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/versions/{part(str(version))}/diff",
        query={"base": base},
    )


def get_dependencies(project: str, name: str) -> Call[types.DependenciesOut]:
    """Show what a workflow names and what names it.

    The workflows that it runs or waits for, and those that run it or wait for it.

    By the newest definitions, in all projects that the caller sees; of others only how many.
    """
    return Call("GET", f"/projects/{part(str(project))}/workflows/{part(str(name))}/dependencies")


def get_dependency_graph(
    project: str,
    *,
    workflow: str | None = None,
    date: str | date | None = None,
    hops: int | None = None,
) -> Call[types.DependencyGraphOut]:
    """Show which workflows wait for which on a day.

    Workflows with their runs, and what they wait for, by the newest definitions.

    A workflow waits for those that it runs (SUB_WORKFLOW, MAP), and for those whose runs its
    DEPENDENT tasks look for. What counts of a workflow are the runs that matter for the day: where
    one looks for `last1Days`, those of the day before. Around a project every workflow has its own
    day, and `edges` tell which runs of which day are waited for. 500 workflows at most;
    `is_cut` tells.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/dependency-graph",
        query={"workflow": workflow, "date": date, "hops": hops},
    )


def get_hanging(project: str, name: str) -> Call[types.HangingOut]:
    """Show what hangs on a workflow.

    Look at it before you delete or rename a workflow.
    """
    return Call("GET", f"/projects/{part(str(project))}/workflows/{part(str(name))}/hanging")


def get_layout(project: str, name: str) -> Call[types.LayoutOut]:
    """Show where tasks are.

    Positions, groups and folded groups. Empty if nothing was arranged.
    """
    return Call("GET", f"/projects/{part(str(project))}/workflows/{part(str(name))}/layout")


def get_version(project: str, name: str, version: int) -> Call[types.VersionDetail]:
    """Show a version.

    One version with its definition.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/versions/{part(str(version))}",
    )


def get_workflow(project: str, name: str) -> Call[types.WorkflowDetail]:
    """Show a workflow.

    A workflow with its newest definition.
    """
    return Call("GET", f"/projects/{part(str(project))}/workflows/{part(str(name))}")


def get_workflow_grid(
    project: str,
    name: str,
    *,
    sort: Literal["-logical_time", "-created_at"] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.GridOut]:
    """Show the runs of a workflow with the states of their tasks.

    Runs by tasks: one character for the newest attempt of each task, which `legend` explains.

    `tasks` are those of the newest version and then those that only the runs of this page have, so
    the place of a column belongs to its page. A page has 200,000 cells at most: of workflows with
    more than 2,000 tasks it has fewer runs. `next` leads to the runs before.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/grid",
        query={"sort": sort, "limit": limit, "cursor": cursor},
    )


def list_versions(
    project: str, name: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.VersionPage]:
    """List versions.

    The history of a workflow, newest version first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/versions",
        query={"limit": limit, "cursor": cursor},
    )


def list_workflow_days(
    project: str,
    name: str,
    *,
    first: str | date | None = None,
    limit: int | None = None,
    timezone: str | None = None,
    cursor: str | None = None,
) -> Call[types.DayPage]:
    """List the days of a workflow's calendar.

    Day by day: how the newest run for each logical time went, and how many fires have no run.

    `limit` days from `first` on. One answer looks at 20,000 runs and 10,000 fire times at most;
    `next` leads to the days that are left of these.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/days",
        query={"first": first, "limit": limit, "timezone": timezone, "cursor": cursor},
    )


def list_workflows(
    *,
    project: str | None = None,
    label: Sequence[str] | None = None,
    search: str | None = None,
    owner: str | None = None,
    archived: Literal["false", "true", "any"] | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    runs: int | None = None,
    sort: types.WorkflowOrder | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.WorkflowPage]:
    """List workflows.

    Workflows, each with its newest version, its last runs if asked for, and its next fire time.

    The last run is that for the latest logical time.
    """
    return Call(
        "GET",
        "/workflows",
        query={
            "project": project,
            "label": label,
            "search": search,
            "owner": owner,
            "archived": archived,
            "state": state,
            "runs": runs,
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
        },
    )


def publish_workflow(
    project: str,
    name: str,
    body: types.WorkflowSpec,
    *,
    dry_run: bool | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.PublishOut]:
    """Publish a definition.

    Checks the whole definition and reports all problems at once.

    A new version is made only if something differs from the newest one. Everything happens in
    one transaction: version, schedules and event, or nothing.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}",
        query={"dry_run": dry_run},
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_layout(
    project: str,
    name: str,
    body: types.LayoutIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.LayoutOut]:
    """Arrange tasks.

    Replaces the layout. Versions and drafts stay as they are, and nothing is run.

    It follows the workflow to another name and is copied with it; it goes when that is deleted.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/layout",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def rename_workflow(
    project: str,
    name: str,
    body: types.RenameIn,
    *,
    dry_run: bool | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.RenameOut]:
    """Rename a workflow.

    Publishes a version with the new name. History, schedules, drafts and open runs go with it.

    Refused while other workflows name it by the old one, unless `despite` says so; `dry_run` lists
    them. What it says of itself follows.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/rename",
        query={"dry_run": dry_run},
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def restore_version(
    project: str,
    name: str,
    version: int,
    *,
    dry_run: bool | None = None,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.PublishOut]:
    """Publish an older version again.

    Makes a new version that says what the older one says; nothing of the history is lost.

    What it names has to be there now: calendars, groups, environments, grants. It keeps the name
    that the workflow has now.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/versions/{part(str(version))}/restore",
        query={"dry_run": dry_run},
        headers={"if-match": if_match, "if-none-match": if_none_match},
        repeat=True,
    )


def unarchive_workflow(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[types.WorkflowOut]:
    """Take a workflow out of the archive.

    Its schedules fire again from now on; what they have left out is not made up for.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/unarchive",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        repeat=True,
    )
