"""``shoal parameter``: what all workflows of a project see."""

from typing import Annotated

import typer

from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json, Project, projects_of

group = typer.Typer(
    name="parameter",
    no_args_is_help=True,
    help="Parameters of a project: all its workflows see them, unless they define the same name.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits and '_'.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Workflows")


@group.command("set")
def put(
    name: Name,
    value: Annotated[str, typer.Argument(help="May hold ${other} and $[yyyyMMdd-1].")],
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Set a parameter. Runs that have started keep the value they started with."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        found = client.with_project(client.put_parameter, home, name, {"value": value})
    if as_json:
        print_json(found)
    else:
        say(f"parameter {home}/{name} is set")


@group.command("list")
def list_parameters(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List the parameters of projects."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        homes = projects_of(client, project)
        found = {
            home: {one["name"]: one["value"] for one in client.pages(client.list_parameters, home)}
            for home in homes
        }
    if as_json:
        print_json(found)
        return
    if not any(found.values()):
        say("no parameters; set one with `shoal parameter set NAME VALUE`")
        return
    shown = TextTable(["project", "parameter", "value~"])
    for home, parameters in found.items():
        for name, value in sorted(parameters.items()):
            shown.add(home, name, value)
    out().print(shown.table(out().width))


@group.command()
def delete(name: Name, project: Project = None, data: Data = None) -> None:
    """Remove a parameter. Runs that have started keep it."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        client.delete_parameter(home, name)
    say(f"parameter {home}/{name} is removed")
