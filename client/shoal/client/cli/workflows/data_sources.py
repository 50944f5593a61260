"""``shoal data-source``: where tasks find databases and services."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from shoal.client.cli.terminal.options import (
    Data,
    Json,
    Parameters,
    Project,
    home_of,
    option_text,
    parse_parameters,
    projects_of,
)
from shoal.core.errors import shortened

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import DataSourceIn, DataSourceOut

group = typer.Typer(
    name="data-source",
    no_args_is_help=True,
    help="Data sources of a project: databases and services that tasks name in their params.",
)

# By the names of JSON Schema; an integer is tried before a number.
_VALUE_TYPES: Mapping[str, type[bool] | type[int] | type[float]] = {
    "boolean": bool,
    "integer": int,
    "number": float,
}

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Letters, digits and '_'; also as PROJECT/NAME.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Workflows")


@group.command("set")
def put(
    name: Name,
    kind: Annotated[
        str | None, typer.Option(help="Such as postgresql, mariadb, sqlite, duckdb, spark.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Name or address of the server.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Of the server; 0: the usual one.")
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="A database of the server; of sqlite and duckdb a file.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="Who signs in.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="One of the kind; NAME= takes it away."),
    ] = None,
    ca_certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="PEM file of the server's authority."
        ),
    ] = None,
    share_with: Annotated[
        list[str] | None,
        typer.Option(metavar="PROJECT", help="Project whose tasks may use it; '*': all projects."),
    ] = None,
    not_shared: Annotated[
        bool, typer.Option("--not-shared", help="Stop sharing it with other projects.")
    ] = False,
    password: Annotated[
        bool,
        typer.Option(
            "--password",
            "--password-stdin",
            help="Ask for the password, or read it from standard input: never an argument.",
        ),
    ] = False,
    password_secret: Annotated[
        str | None, typer.Option(metavar="SECRET", help="A secret of the project is the password.")
    ] = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="Remove the password.")
    ] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a data source, or change what is given of one; all else stays as it was."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    if password + (password_secret is not None) + no_password > 1:
        raise typer.BadParameter(
            "--password, --password-secret and --no-password exclude each other"
        )
    if not_shared and share_with:
        raise typer.BadParameter("--share-with and --not-shared exclude each other")
    home, name = home_of(name, project)
    given = {"host": host, "database": database, "user": user}
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if port is not None:
        changes["port"] = port or None
    if share_with or not_shared:
        changes["shared_with"] = share_with or []
    with ShoalClient.connect(data) as client:
        before = _definition(client, home, name)
        kinds = {one["kind"]: one for one in client.pages(client.list_data_source_kinds)}
        if before is None and kind is None:
            raise typer.BadParameter(f"--kind is required: one of {', '.join(kinds)}")
        if before is None or kind not in (None, before["kind"]):
            before = {"kind": kind, "options": {}}  # another kind keeps nothing
        definition = before | changes
        # The server knows the kinds that are installed there, and explains what it refuses.
        schema = kinds[before["kind"]]["options_schema"] if before["kind"] in kinds else {}
        options = definition["options"] | dict(_options(schema, option or []))
        if ca_certificate is not None:
            options["ca_certificate"] = option_text(ca_certificate, "--ca-certificate", "ascii")
        definition["options"] = {key: one for key, one in options.items() if one != ""}
        definition |= _password(f"{home}/{name}", password, password_secret, no_password)
        stored = client.with_project(
            client.put_data_source, home, name, cast("DataSourceIn", definition)
        )
    if as_json:
        print_json(stored)
    else:
        say(f"data source {home}/{name} is set: {stored['kind']}, {_password_of(stored)}")


def _definition(client: "ShoalClient", home: str, name: str) -> dict[str, Any] | None:
    """Return what can be set of a data source, as it is now; None if there is none."""
    from shoal.core.data_sources.spec import DataSourceSpec

    found: Mapping[str, Any] | None = client.find(client.get_data_source, home, name)
    return None if found is None else {key: found[key] for key in DataSourceSpec.model_fields}


def _options(schema: Mapping[str, Any], given: list[str]) -> Iterator[tuple[str, Any]]:
    for one in given:
        name, equals, text = one.partition("=")
        if not equals:
            raise typer.BadParameter(f"--option {one}: write NAME=VALUE")
        value = option_value(schema.get("properties", {}).get(name, {}), text)
        if isinstance(value, float) and not math.isfinite(value):
            raise typer.BadParameter(
                f"--option {name}={shortened(text, 60)}: not a finite number; write one such as 2.5"
            )
        yield name, value


def option_value(schema: Mapping[str, Any], text: str) -> str | int | float | bool:
    """Return the value that ``text`` stands for, such as true, yes or 10, by the option's schema.

    A text that does not fit is returned unchanged, for the server to refuse.
    """
    from pydantic import TypeAdapter

    types = {one.get("type") for one in schema.get("anyOf", [schema])}
    for name, value_type in _VALUE_TYPES.items():
        if name in types:
            with suppress(ValueError):
                return TypeAdapter(value_type).validate_strings(text)
    return text


def _password(what: str, ask: bool, secret: str | None, none: bool) -> dict[str, Any]:
    if ask:
        from shoal.client.cli.workflows.secrets import read_value

        return {"password": read_value(f"Password of {what}")}
    if secret is not None:
        return {"password": "${secret." + secret + "}"}
    return {"password": None} if none else {}


@group.command("list")
def list_sources(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List data sources; their passwords are shown nowhere."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        homes = projects_of(client, project)
        found: list[DataSourceOut] = [
            one for home in homes for one in client.pages(client.list_data_sources, home)
        ]
    if as_json:
        print_json(found)
        return
    if not found:
        say("no data sources; make one with `shoal data-source set NAME --kind KIND`")
        return
    shown = TextTable(["data source", "kind", "where", "user", "password", "shared with~"])
    for one in found:
        name = Text.assemble((f"{one['project']}/", "dim"), one["name"])
        password = "" if not one["has_password"] else _password_of(one)
        shared = Text(", ".join(one["shared_with"]), "dim")
        shown.add(name, one["kind"], _where(one), one["user"], password, shared)
    out().print(shown.table(out().width))


@group.command()
def show(name: Name, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Show a data source, without its password."""
    from datetime import UTC, datetime

    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_data_source(*home_of(name, project))
    if as_json:
        print_json(found)
        return
    head = Text.assemble((f"{found['project']}/", "dim"), (found["name"], "bold"))
    head.append(f"  {found['kind']}  version {found['version']}")
    head.append(f"  set {clock(found['updated_at'], datetime.now(UTC))}", "dim")
    out().print(head)
    lines = {
        "where": _where(found),
        "user": found["user"],
        "password": _password_of(found),
        **{name: _option(value) for name, value in sorted(found["options"].items())},
        "shared with": ", ".join(found["shared_with"]),
    }
    shown = TextTable(["field", "value~"])
    for field, value in lines.items():
        if value:
            shown.add(field, value)
    out().print()
    out().print(shown.table(out().width))


def _option(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    lines = text.count("\n")
    return text if lines == 0 else f"a text of {lines} lines, {text.splitlines()[0]}"


def _where(source: "DataSourceOut") -> str:
    host = f"[{source['host']}]" if ":" in source["host"] else source["host"]
    server = host + (f":{source['port']}" if source["port"] else "")
    return "/".join(part for part in (server, source["database"]) if part)


def _password_of(source: "DataSourceOut") -> str:
    if source["password_secret"] is not None:
        return "${secret." + source["password_secret"] + "}"
    return "***" if source["has_password"] else "no password"


@group.command()
def delete(name: Name, project: Project = None, data: Data = None) -> None:
    """Delete a data source; tasks that name it fail from now on."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        client.delete_data_source(home, name)
    say(f"data source {home}/{name} is deleted")


@group.command("test")
def try_source(
    name: Name,
    worker_group: Annotated[
        str, typer.Option("--group", metavar="GROUP", help="A worker of this group signs in.")
    ] = "default",
    parameter: Parameters = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Have a worker sign in there and ask which server it is."""
    from shoal.client.cli.exits import ExitStatus
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        found = client.test_data_source(
            home,
            name,
            {"worker_group": worker_group, "parameters": parse_parameters(parameter)},
        )
    if as_json:
        print_json(found)
    else:
        took = f"({found['took_s']:.1f} s, {found['worker']})"
        say(f"{'ok' if found['ok'] else 'failed'}: {found['text']} {took}")
    if not found["ok"]:
        raise typer.Exit(ExitStatus.FAILED)
