"""``shoal versions``, ``diff`` and ``restore``: the history of a workflow."""

from typing import Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json, Project, WorkflowName, find_workflow


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (versions, diff, restore):
        app.command(rich_help_panel="Workflows")(command)


def versions(
    name: WorkflowName, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """List the versions of a workflow, newest first."""
    from datetime import UTC, datetime

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_versions, *find_workflow(client, name, project)))
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    shown = TextTable(["version>", "published", "by"])
    for one in found:
        shown.add(str(one["version"]), clock(one["created_at"], now), one["published_by"] or "")
    out().print(shown.table(out().width))


def diff(
    name: WorkflowName,
    version: Annotated[
        int | None, typer.Argument(metavar="VERSION", min=1, help="Default: the newest.")
    ] = None,
    base: Annotated[
        int | None, typer.Option(min=0, help="Compared with; default: the version before.")
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show what differs between two versions."""
    from shoal.client.cli.authoring.changes import show_comparison
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, name, project)
        wanted = client.get_workflow(home, name)["version"] if version is None else version
        found = client.diff_versions(home, name, wanted, base=base)
    if as_json:
        print_json(found)
    else:
        show_comparison(found)


def restore(
    name: WorkflowName,
    version: Annotated[int, typer.Argument(metavar="VERSION", min=1)],
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Publish an older version again, as a new one."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, name, project)
        done = client.restore_version(home, name, version)
    if as_json:
        print_json(done)
    elif done["created"]:
        say(f"{home}/{name} is version {done['version']} now, which says what {version} says")
    else:
        say(f"{home}/{name} says that already, version {done['version']}")
