"""``shoal export`` and ``import``: workflows of a project, with what they name."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json

InProject = Annotated[str, typer.Option("--project", metavar="PROJECT", help="The project.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command("export", rich_help_panel="Workflows")(export_workflows)
    app.command("import", rich_help_panel="Workflows")(import_workflows)


def export_workflows(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Default: all in use.")
    ] = None,
    project: InProject = DEFAULT_PROJECT,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Print workflows with their calendars and concurrency groups, for `shoal import`.

    Secrets, passwords and runs are not part of it.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.export_project(project, name=names or ())
    if as_json:
        print_json(found)
        return
    print(found["text"], end="")
    if found["environments"]:
        say(f"has to be there for an import: environments {', '.join(found['environments'])}")


def import_workflows(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `shoal export` has printed.", exists=True)
    ],
    project: InProject = DEFAULT_PROJECT,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would happen, for each.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Store workflows, calendars and concurrency groups: all of a file, or nothing."""
    from rich.text import Text

    from shoal.client.cli.authoring.drafts import tell_problems
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient

    text = file.read_text(encoding="utf-8")
    with ShoalClient.connect(data) as client:
        found = client.import_project(project, {"text": text}, dry_run=True)
        refused = [one for one in found["items"] if one["result"] == "refused"]
        if not dry_run and not refused:
            found = client.import_project(project, {"text": text})
    if as_json:
        print_json(found)
    else:
        for one in found["items"]:
            out().print(Text(f"{one['result']}  {one['kind']} {one['name']}"), soft_wrap=True)
    if refused:
        tell_problems([problem for one in refused for problem in one["problems"]], str(file))
    if not found["stored"]:
        say("nothing was stored")
    if refused:
        raise typer.Exit(2)
