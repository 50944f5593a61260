"""What has happened that rules are about, and who was notified of it."""

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.alerts import definitions, silences
from shoal.client.cli.terminal.options import (
    DEFAULT_PROJECT,
    Data,
    Json,
    Limit,
    Project,
    States,
    page_of,
    read_states,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from shoal.client.rest.operations.generated.types import (
        AlertDeliveryOut,
        AlertDetail,
        AlertExplanationOut,
        AlertOut,
    )


AlertId = Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of an alert.")]


def alerts(
    state: States = None,
    workflow: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only about this workflow.")
    ] = None,
    instance_id: Annotated[
        int | None, typer.Option("--instance", metavar="ID", min=1, help="Only about this run.")
    ] = None,
    limit: Limit = 20,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List alerts, the newest first. OPEN ones go on; RESOLVED ones are over."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.alerts.records import AlertState

    states = read_states(state, AlertState)
    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        listed = client.pages(
            client.list_alerts,
            home,
            state=states,
            workflow=workflow,
            instance_id=instance_id,
            limit=page_of(limit),
        )
        found = list(islice(listed, limit))
        has_rules = bool(found or client.list_alert_rules(home, limit=1)["items"])
    if as_json:
        print_json(found)
    elif found:
        out().print(alerts_table(found, datetime.now(UTC), out().width))
    elif has_rules:
        say(f"no alerts of project {home} that fit")
    else:
        say(f"project {home} has no rules for alerts; make some with `shoal alert apply FILE`")


def show(
    alert_id: AlertId, project: Project = None, data: Data = None, as_json: Json = False
) -> None:
    """Show an alert, and the messages about it."""
    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_alert(project or DEFAULT_PROJECT, alert_id)
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    for line in alert_lines(found, now):
        out().print(line)
    if found["deliveries"]:
        out().print(messages_table(found["deliveries"], now, out().width))


def messages(
    state: States = None,
    channel: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only by this channel.")
    ] = None,
    limit: Limit = 20,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the messages about alerts, the newest first: what was sent, and what was answered."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.alerts.records import DeliveryState

    states = read_states(state, DeliveryState)
    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        listed = client.pages(
            client.list_alert_deliveries, home, state=states, channel=channel, limit=page_of(limit)
        )
        found = list(islice(listed, limit))
    if as_json:
        print_json(found)
    elif found:
        out().print(messages_table(found, datetime.now(UTC), out().width))
    else:
        say(f"no messages of project {home} that fit")


def why(
    instance_id: Annotated[
        int | None, typer.Argument(metavar="RUN", min=1, help="Id of a workflow instance.")
    ] = None,
    event_id: Annotated[
        int | None,
        typer.Option("--event", metavar="ID", min=1, help="One event instead, of any kind."),
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Explain who was notified of what happened in a run, and why others were not."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient

    if (instance_id is None) is (event_id is None):
        raise typer.BadParameter("name a run, or an event with --event", param_hint="RUN")
    with ShoalClient.connect(data) as client:
        home = project
        if home is None and instance_id is not None:
            home = client.get_instance(instance_id)["project"]
        found = list(
            client.pages(
                client.list_alert_explanations,
                home or DEFAULT_PROJECT,
                instance_id=instance_id,
                event_id=event_id,
            )
        )
    if as_json:
        print_json(found)
    elif not found:
        say("nothing has happened that a rule could be about")
    else:
        now = datetime.now(UTC)
        for one in found:
            for line in explanation_lines(one, now):
                out().print(line)


def alerts_table(found: "list[AlertOut]", now: datetime, width: int) -> "Table":
    """Return a line for each alert, ``width`` characters wide."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.tables import TextTable

    shown = TextTable(
        ["id>", "at", "severity", "state", "what", "run>", "rule", "in hand", "reason~"]
    )
    for one in found:
        run = "" if one["instance_id"] is None else str(one["instance_id"])
        about = "/".join(filter(None, (one["workflow"], one["task"])))
        shown.add(
            str(one["id"]),
            clock(one["at"], now),
            severity_text(one["severity"]),
            Text(one["state"], "" if one["state"] == "OPEN" else "dim"),
            Text.assemble(one["trigger"], (f" {about}" if about else "", "dim")),
            run,
            Text(one["rule"], "dim"),
            one["acknowledged_by"] or "",
            Text(one["reason"] or "", "dim"),
        )
    return shown.table(width, ("rule", "in hand", "run"))


def severity_text(severity: str) -> "Text":
    """Return a severity in its colour."""
    from rich.text import Text

    return Text(severity, {"critical": "bold red", "warning": "yellow"}.get(severity, "blue"))


def alert_lines(found: "AlertDetail", now: datetime) -> "list[Text]":
    """Return what is said of an alert above its messages."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock

    about = "/".join(filter(None, (found["workflow"], found["task"])))
    head = Text.assemble((f"alert {found['id']}  ", "bold"), severity_text(found["severity"]))
    head.append(f"  {found['state']}  {found['trigger']} {about}".rstrip())
    lines = [head]
    facts = [
        f"at {clock(found['at'], now)}, rule {found['rule']}",
        f"run {found['instance_id']}" if found["instance_id"] is not None else "",
        f"over since {clock(found['resolved_at'], now)}" if found["resolved_at"] else "",
        f"in hand of {found['acknowledged_by']}" if found["acknowledged_by"] else "",
        f"silenced (silence {found['silenced_by']})" if found["silenced_by"] else "",
        f"told again at {clock(found['next_at'], now)}" if found["next_at"] else "",
    ]
    lines.append(Text(", ".join(filter(None, facts)), "dim"))
    if found["reason"]:
        lines.append(Text(found["reason"]))
    return lines


def messages_table(found: "list[AlertDeliveryOut]", now: datetime, width: int) -> "Table":
    """Return a line for each message, ``width`` characters wide."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.tables import TextTable

    shown = TextTable(["id>", "at", "kind", "receiver", "channel", "state", "tries>", "answer~"])
    colours = {"SENT": "green", "FAILED": "red"}
    for one in found:
        shown.add(
            str(one["id"]),
            clock(one["sent_at"] or one["due_at"], now),
            Text(one["kind"].lower(), "dim"),
            one["receiver"],
            one["channel"],
            Text(one["state"], colours.get(one["state"], "dim")),
            str(one["tries"]),
            Text(one["answer"] or "", "dim"),
        )
    return shown.table(width, ("tries", "kind"))


def explanation_lines(found: "AlertExplanationOut", now: datetime) -> "list[Text]":
    """Return what the rules made of something that happened."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock

    about = "/".join(filter(None, (found["workflow"], found["task"])))
    head = Text.assemble((found["trigger"], "bold"), f" {about}".rstrip())
    head.append(f"  {clock(found['at'], now)}, event {found['event_id']}", "dim")
    lines = [head]
    for rule in found["rules"]:
        line = Text(f"  rule {rule['rule']}: ")
        alert = rule["alert"]
        if alert is None:
            line.append(rule["reason"] or "", "dim")
        else:
            line.append(f"alert {alert['id']}", "bold")
            if alert["silenced_by"] is not None:
                line.append(f", silenced (silence {alert['silenced_by']})")
        lines.append(line)
        told = alert["deliveries"] if alert is not None else ()
        lines += [Text(f"    {_told(one)}") for one in told]
    if not found["rules"]:
        lines.append(Text("  the project has no rules", "dim"))
    return lines


def _told(one: "AlertDeliveryOut") -> str:
    told = f"{one['receiver']} by {one['channel']}: {one['state']}"
    return f"{told}, {one['answer']}" if one["answer"] else told


group = typer.Typer(
    name="alert",
    no_args_is_help=True,
    help="Alerts of a project: rules define what raises an alert, receivers who is notified, "
    "channels how.",
)


# Once, as the module is imported: the program is built again by each call from Python.
for _command in (
    show,
    why,
    messages,
    silences.ack,
    silences.silence,
    silences.silences,
    silences.unsilence,
    definitions.apply,
    definitions.rules,
    definitions.receivers,
    definitions.channels,
    definitions.kinds,
    definitions.preview,
    definitions.delete,
):
    group.command()(_command)
group.command("test")(silences.try_channel)


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.command(rich_help_panel="Runs")(alerts)
    app.add_typer(group, rich_help_panel="Runs")
