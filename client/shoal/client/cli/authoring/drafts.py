"""``shoal draft``: what is not published yet, kept by the API, one for each workflow and person."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import (
    DEFAULT_PROJECT,
    Data,
    Json,
    Project,
    WorkflowName,
    home_of,
)

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import ProblemField

group = typer.Typer(
    name="draft",
    no_args_is_help=True,
    help="Definitions that are not published yet. Each person has one of each workflow.",
)
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A definition in YAML.", exists=True, dir_okay=False)
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Workflows")


@group.command("list")
def list_drafts(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List who works on what."""
    from datetime import UTC, datetime

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_drafts, home))
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"no drafts in project {home}")
        return
    now = datetime.now(UTC)
    shown = TextTable(["workflow", "editor", "base>", "newest>", "changed"])
    for one in found:
        numbers = (str(one["base_version"]), str(one["newest_version"]))
        shown.add(one["name"], one["editor"], *numbers, clock(one["updated_at"], now))
    out().print(shown.table(out().width))


@group.command()
def show(
    name: WorkflowName,
    editor: Annotated[
        str | None, typer.Option(metavar="USER", help="Whose; default: your own.")
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Print a draft as it was typed."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found, etag = client.with_etag(client.get_draft, *home_of(name, project), editor=editor)
    if as_json:
        print_json({**found, "etag": etag})
    else:
        print(found["text"], end="")


@group.command()
def save(
    name: WorkflowName,
    file: File,
    base: Annotated[
        int | None,
        typer.Option(min=0, help="The version that it builds upon; default: as it was."),
    ] = None,
    etag: Annotated[
        str | None,
        typer.Option(help="Save only if the draft is as `show --json` has told its etag."),
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Keep a file as your draft, also if it is not a definition yet."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    text = file.read_text(encoding="utf-8")
    with ShoalClient.connect(data) as client:
        if etag is None:
            etag = client.etag if client.find(client.get_draft, home, name) else None
        stored, etag = client.with_etag(
            client.put_draft,
            home,
            name,
            {"text": text, "base_version": base},
            if_match=etag,
            if_none_match="*" if etag is None else None,
        )
    if as_json:
        print_json({**stored, "etag": etag})
        return
    based = f"version {stored['base_version']}" if stored["base_version"] else "nothing"
    say(f"draft of {home}/{name} is saved; it builds upon {based}")


@group.command()
def check(
    name: WorkflowName,
    file: File,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Say all that is wrong with a file, with lines; nothing is stored."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        found = client.validate_workflow(home, name, {"text": file.read_text(encoding="utf-8")})
    if as_json:
        print_json(found)
    elif found["valid"]:
        say(f"{file} could be published as {home}/{name}")
    else:
        tell_problems(found["problems"], str(file))
    if not found["valid"]:
        raise typer.Exit(2)


@group.command()
def plan(
    name: WorkflowName, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """Show what publishing your draft would do."""
    from shoal.client.cli.authoring.changes import show_plan
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        found = client.plan_workflow(home, name, {"text": client.get_draft(home, name)["text"]})
    if as_json:
        print_json(found)
    else:
        show_plan(found)


@group.command()
def publish(
    name: WorkflowName, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """Publish your draft; refused if another user has published since you began."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        _, etag = client.with_etag(client.get_draft, home, name)
        done = client.publish_draft(home, name, if_match=etag)
    if as_json:
        print_json(done)
    elif done["created"]:
        say(f"{home}/{name} is version {done['version']} now")
    else:
        say(f"{home}/{name} is as it was, version {done['version']}")


@group.command()
def discard(name: WorkflowName, project: Project = None, data: Data = None) -> None:
    """Delete your draft; what is published stays."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        _, etag = client.with_etag(client.get_draft, home, name)
        client.delete_draft(home, name, if_match=etag)
    say(f"draft of {home}/{name} is deleted")


def tell_problems(problems: "list[ProblemField]", file: str) -> None:
    """Print what is wrong, each with its line."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import err

    for one in problems:
        place = file if one["line"] is None else f"{file}:{one['line']}"
        field = f"{one['field']}: " if one["field"] else ""
        line = Text.assemble((f"{place}: ", "bold"), (field, "cyan"), one["message"])
        err().print(line, soft_wrap=True)
    err().print(Text(plural(len(problems), "problem"), "red"))
