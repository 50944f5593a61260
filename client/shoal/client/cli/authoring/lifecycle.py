"""``shoal copy``, ``rename``, ``archive``, ``unarchive`` and ``delete``."""

from enum import StrEnum
from typing import Annotated

import typer

from shoal.client.cli.terminal.options import (
    Data,
    Json,
    Project,
    WorkflowName,
    find_workflow,
    home_of,
)


class Despite(StrEnum):
    """What may hang on a workflow that is deleted."""

    RUNS = "runs"
    REFERENCES = "references"
    BACKFILLS = "backfills"


DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (copy, rename, archive, unarchive, delete):
        app.command(rich_help_panel="Workflows")(command)


def copy(
    source: WorkflowName,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="NAME or PROJECT/NAME.")],
    version: Annotated[int | None, typer.Option(min=1, help="An older version.")] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Copy a workflow, also into another project; what is there already is never changed."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, source, project)
        there, new = home_of(target, None if "/" in target else home)
        done = client.copy_workflow(
            there, new, {"project": home, "workflow": name, "version": version}
        )
    if as_json:
        print_json(done)
    else:
        say(f"{there}/{new} is a copy of {home}/{name}")


def rename(
    name: WorkflowName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name, without project.")],
    despite_references: Annotated[
        bool,
        typer.Option("--despite-references", help="Although other workflows name it, which fail."),
    ] = False,
    dry_run: DryRun = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Rename a workflow: history, schedules, drafts and open runs go with it."""
    from shoal.client.cli.authoring.changes import show_named
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, name, project)
        done = client.rename_workflow(
            home,
            name,
            {"name": new, "despite": ["references"] if despite_references else []},
            dry_run=dry_run or None,
        )
    if as_json:
        print_json(done)
        return
    show_named(done["downstream"], done["hidden"])
    does = "would be called" if dry_run else "is called"
    say(f"{home}/{name} {does} {home}/{done['name']}")


def archive(
    name: WorkflowName, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """Archive a workflow: no run of it starts. Its history stays."""
    _archive(name, project, data, as_json, is_archived=True)


def unarchive(
    name: WorkflowName, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """Take a workflow out of the archive; its schedules fire from now on."""
    _archive(name, project, data, as_json, is_archived=False)


def _archive(
    name: str, project: str | None, data: Data, as_json: bool, *, is_archived: bool
) -> None:
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        change = client.archive_workflow if is_archived else client.unarchive_workflow
        found = change(home, name)
    if as_json:
        print_json(found)
    else:
        says = "is archived: nothing of it starts" if is_archived else "is in use again"
        say(f"{home}/{name} {says}")


def delete(
    name: WorkflowName,
    despite: Annotated[
        list[Despite] | None,
        typer.Option(help="Delete it although there are such; open runs go on to their end."),
    ] = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: Project = None,
    data: Data = None,
) -> None:
    """Delete a workflow and its schedules; its versions and its runs stay readable.

    Shows first what hangs on it. Refused while runs are open, backfills run, or other workflows
    name it.
    """
    import sys

    from shoal.client.cli.authoring.changes import show_hanging
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, name, project)
        show_hanging(client.get_hanging(home, name))
        if dry_run:
            return
        asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
        if asks and not typer.confirm(f"Delete {home}/{name}?", default=False, err=True):
            say("nothing was deleted")
            raise typer.Exit(1)
        client.delete_workflow(home, name, despite=[one.value for one in despite or ()])
    say(f"workflow {home}/{name} is deleted")
