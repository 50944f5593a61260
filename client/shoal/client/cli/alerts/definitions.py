"""Rules, receivers and channels: applied from a file, listed, shown, deleted."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json, Project

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import (
        AlertChannelOut,
        AlertReceiverOut,
        AlertRuleOut,
        RuleSpec,
    )
    from shoal.client.sources.object_files import AlertThing, Defined

    AlertDefinition: TypeAlias = AlertRuleOut | AlertReceiverOut | AlertChannelOut

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="YAML with channels, receivers and rules, each by their names."
    ),
]
Named = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Print this one as YAML, to be applied again.")
]


def apply(file: File, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Make or change channels, receivers and rules as a file has them. Others stay."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.client.sources.object_files import read_alerts

    home = project or DEFAULT_PROJECT
    definitions = read_alerts(file)
    stored = []
    with ShoalClient.connect(data) as client:
        for one in definitions:
            made = _put(client, home, one)
            stored.append({"thing": one.thing, **made})
            if not as_json:
                say(f"{one.thing} {home}/{one.name}: version {made['version']}")
    if as_json:
        print_json(stored)


def rules(
    name: Named = None, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """List rules, or show one: what people are notified of."""
    _look("rule", name, project, data, as_json=as_json)


def receivers(
    name: Named = None, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """List receivers, or show one: who is notified."""
    _look("receiver", name, project, data, as_json=as_json)


def channels(
    name: Named = None, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """List channels, or show one: by which way messages leave."""
    _look("channel", name, project, data, as_json=as_json)


def kinds(data: Data = None, as_json: Json = False) -> None:
    """List the kinds of channels, with their options."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_alert_channel_kinds))
    if as_json:
        print_json(found)
        return
    shown = TextTable(["kind", "option", "needed", "what~"])
    for one in found:
        schema = one["options_schema"]
        needed = schema.get("required", ())
        for number, (option, about) in enumerate(schema.get("properties", {}).items()):
            text = Text(str(about.get("description") or about.get("title") or ""), "dim")
            kind = one["kind"] if number == 0 else ""
            shown.add(Text(kind, "bold"), option, "yes" if option in needed else "", text)
    out().print(shown.table(out().width))


def preview(
    file: File,
    rule: Annotated[str, typer.Option(metavar="NAME", help="Which rule of the file.")],
    alert_id: Annotated[
        int | None,
        typer.Option("--alert", metavar="ID", min=1, help="About this alert, not an example."),
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Print what a rule of a file would say. Nothing is stored or sent."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.rest.client import ShoalClient
    from shoal.client.sources.object_files import read_alerts

    specs = {one.name: one.spec for one in read_alerts(file) if one.thing == "rule"}
    if rule not in specs:
        known = ", ".join(specs) or "none"
        raise typer.BadParameter(
            f"{file} has no rule {rule}; there are: {known}", param_hint="--rule"
        )
    with ShoalClient.connect(data) as client:
        found = client.preview_alert(
            project or DEFAULT_PROJECT,
            {"rule": cast("RuleSpec", specs[rule]), "alert_id": alert_id},
        )
    if as_json:
        print_json(found)
        return
    out().print(Text(found["subject"], "bold"))
    out().print(Text(found["text"]))


def delete(
    thing: Annotated[
        Literal["rule", "receiver", "channel"],
        typer.Argument(metavar="KIND", help="rule, receiver or channel."),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    project: Project = None,
    data: Data = None,
) -> None:
    """Delete a rule, a receiver or a channel."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        match thing:
            case "rule":
                client.delete_alert_rule(home, name)
            case "receiver":
                client.delete_alert_receiver(home, name)
            case "channel":
                client.delete_alert_channel(home, name)
    say(f"{thing} {home}/{name} is deleted")


def _put(client: "ShoalClient", home: str, one: "Defined") -> "AlertDefinition":
    body: Any = one.spec  # read with the models of the core
    match one.thing:
        case "rule":
            return client.with_project(client.put_alert_rule, home, one.name, body)
        case "receiver":
            return client.with_project(client.put_alert_receiver, home, one.name, body)
        case "channel":
            return client.with_project(client.put_alert_channel, home, one.name, body)


def _get(client: "ShoalClient", home: str, thing: "AlertThing", name: str) -> "AlertDefinition":
    match thing:
        case "rule":
            return client.get_alert_rule(home, name)
        case "receiver":
            return client.get_alert_receiver(home, name)
        case "channel":
            return client.get_alert_channel(home, name)


def _list(client: "ShoalClient", home: str, thing: "AlertThing") -> "list[AlertDefinition]":
    match thing:
        case "rule":
            return list(client.pages(client.list_alert_rules, home))
        case "receiver":
            return list(client.pages(client.list_alert_receivers, home))
        case "channel":
            return list(client.pages(client.list_alert_channels, home))


def _look(
    thing: "AlertThing", name: str | None, project: str | None, data: Path | None, *, as_json: bool
) -> None:
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient
    from shoal.client.sources.object_files import summary, written

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        if name is not None:
            one = _get(client, home, thing, name)
            if as_json:
                print_json(one)
            else:
                typer.echo(written(thing, name, one["spec"]), nl=False)
            return
        found = _list(client, home, thing)
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"project {home} has no {thing}s; `shoal alert apply FILE` makes them")
        return
    now = datetime.now(UTC)
    shown = TextTable([thing, "version>", "changed", "what~"])
    for one in found:
        what = Text(summary(thing, one["spec"]), "dim")
        shown.add(one["name"], str(one["version"]), clock(one["updated_at"], now), what)
    out().print(shown.table(out().width))
