"""``shoal environment``: what programs of tasks find around them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from shoal.client.cli.terminal.options import Data, Json, option_text

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import EnvironmentIn, EnvironmentOut

group = typer.Typer(
    name="environment",
    no_args_is_help=True,
    help="Environments of the cluster: variables, a Python and a setup that workflows name.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Letters, digits, '_', '.' and '-'; not 'none'.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Cluster")


@group.command("set")
def put(
    name: Name,
    variable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="An environment variable; NAME= makes it empty. Repeatable."
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A variable that it has no more. Repeatable."),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="An interpreter or a virtual environment, on the workers; '' for none.",
        ),
    ] = None,
    setup: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="What bash sources before a program."
        ),
    ] = None,
    no_setup: Annotated[bool, typer.Option("--no-setup", help="Remove the setup.")] = False,
    worker_group: Annotated[
        list[str] | None,
        typer.Option(
            "--group", metavar="GROUP", help="Workers that have it, instead of those before."
        ),
    ] = None,
    all_groups: Annotated[
        bool, typer.Option("--all-groups", help="Workers of all groups have it.")
    ] = False,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make an environment, or change what is given of one; all else stays as it was.

    All users can read variables and setup: secrets do not belong there.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    if setup is not None and no_setup:
        raise typer.BadParameter("--setup and --no-setup exclude each other")
    if worker_group and all_groups:
        raise typer.BadParameter("--group and --all-groups exclude each other")
    changes: dict[str, Any] = {"python": python, "description": description}
    changes["setup"] = (
        option_text(setup, "--setup", "utf-8") if setup is not None else "" if no_setup else None
    )
    changes["worker_groups"] = worker_group or ([] if all_groups else None)
    if all(value is None for value in (*changes.values(), variable, unset)):
        raise typer.BadParameter("nothing is given: say what it has, such as --python PATH")
    with ShoalClient.connect(data) as client:
        definition = _definition(client, name)
        definition |= {field: value for field, value in changes.items() if value is not None}
        definition["variables"] = _variables(definition["variables"], variable or [], unset or [])
        stored = client.put_environment(name, cast("EnvironmentIn", definition))
    if as_json:
        print_json(stored)
    else:
        say(f"environment {name} is set, version {stored['version']}: {_summary(stored)}")


def _definition(client: "ShoalClient", name: str) -> dict[str, Any]:
    """Return what can be set of an environment, as it is now; of a new one nothing is."""
    from shoal.core.definition.environments import EnvironmentSpec

    stored = client.find(client.get_environment, name)
    found: dict[str, Any] = {**stored} if stored else EnvironmentSpec().model_dump(mode="json")
    return {key: found[key] for key in EnvironmentSpec.model_fields}


def _variables(before: dict[str, str], given: list[str], gone: list[str]) -> dict[str, str]:
    from shoal.core.hints import Hints

    found = dict(before)
    for name in gone:
        if name not in found:
            raise typer.BadParameter(f"--unset {name}: it has none{Hints().of(name, found)}")
        del found[name]
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise typer.BadParameter(f"--variable {one}: write NAME=VALUE")
        found[name] = value
    return found


def _summary(found: "EnvironmentOut") -> str:
    from shoal.client.cli.terminal.appearance import plural

    parts = [plural(len(found["variables"]), "variable")]
    parts += [found["python"]] if found["python"] else []
    parts += ["a setup"] if found["setup"] else []
    return ", ".join([*parts, f"for {_groups(found)}"])


def _groups(found: "EnvironmentOut") -> str:
    return ", ".join(found["worker_groups"]) or "all worker groups"


@group.command("list")
def list_environments(data: Data = None, as_json: Json = False) -> None:
    """List environments."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_environments))
    if as_json:
        print_json(found)
        return
    if not found:
        say("no environments; make one with `shoal environment set NAME --python PATH`")
        return
    shown = TextTable(
        ["environment", "version>", "variables>", "python", "setup", "for", "description~"]
    )
    for one in found:
        numbers = [str(one["version"]), str(len(one["variables"]))]
        rest = [one["python"], "yes" if one["setup"] else "", _groups(one)]
        shown.add(one["name"], *numbers, *rest, Text(one["description"], "dim"))
    out().print(shown.table(out().width, ("description", "variables", "setup")))


@group.command()
def show(name: Name, data: Data = None, as_json: Json = False) -> None:
    """Show an environment, and the workflows that name it."""
    from datetime import UTC, datetime

    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_environment(name)
    if as_json:
        print_json(found)
        return
    head = Text.assemble((found["name"], "bold"), f"  version {found['version']}")
    head.append(f"  set {clock(found['updated_at'], datetime.now(UTC))}", "dim")
    out().print(head)
    lines = {
        "description": found["description"],
        "python": found["python"],
        "worker groups": _groups(found),
        "workflows": ", ".join(found["workflows"]),
        **{f"${variable}": value for variable, value in sorted(found["variables"].items())},
    }
    shown = TextTable(["field", "value~"])
    for field, value in lines.items():
        if value or field.startswith("$"):
            shown.add(field, value)
    out().print()
    out().print(shown.table(out().width))
    if found["setup"]:
        out().print()
        out().print(Text("setup", "dim"))
        out().print(Text(found["setup"].rstrip("\n")), soft_wrap=True)


@group.command()
def delete(name: Name, data: Data = None) -> None:
    """Delete an environment; refused while a workflow names it."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        client.delete_environment(name)
    say(f"environment {name} is deleted")
