"""Acknowledge, silence, try a channel."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.exits import ExitStatus
from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json, Project, in_utc

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import AlertSilenceOut

_LOOK_S = 0.5


def ack(
    alert_ids: Annotated[list[int], typer.Argument(metavar="ID…", min=1, help="Ids of alerts.")],
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Acknowledge alerts: no further reminders are sent."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        found = [client.acknowledge_alert(home, one) for one in alert_ids]
    if as_json:
        print_json(found)
        return
    for one in found:
        say(f"alert {one['id']} is in hand of {one['acknowledged_by']}")


def silence(
    lasts: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="How long, such as 2h.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="Until this time (UTC) instead.")
    ] = None,
    workflow: Annotated[
        str, typer.Option(metavar="PATTERN", help="Only about these workflows, such as load-*.")
    ] = "",
    task: Annotated[str, typer.Option(metavar="PATTERN", help="Only about these tasks.")] = "",
    rule: Annotated[str, typer.Option(metavar="PATTERN", help="Only of these rules.")] = "",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the others.")] = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Send nothing about some alerts for a while. What is still open at the end is sent then."""
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    end = _end(lasts, until)
    with ShoalClient.connect(data) as client:
        made = client.create_alert_silence(
            home,
            {
                "workflow": workflow,
                "task": task,
                "rule": rule,
                "until": end.isoformat(),
                "reason": reason,
            },
        )
    if as_json:
        print_json(made)
    else:
        when = clock(made["until"], datetime.now(UTC))
        say(f"silence {made['id']}: no notification is sent for {covered(home, made)} until {when}")


def _end(lasts: str | None, until: datetime | None) -> datetime:
    from shoal.core.timing.durations import InvalidDuration, parse_duration

    if (lasts is None) is (until is None):
        raise typer.BadParameter("say how long: --for 2h, or --until TIME", param_hint="--for")
    if until is not None:
        return in_utc(until) or until
    assert lasts is not None, "one of them is there"
    try:
        return datetime.now(UTC) + timedelta(seconds=parse_duration(lasts))
    except (InvalidDuration, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint="--for") from None


def silences(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List the silences that are not over."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_alert_silences, home))
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"nothing of project {home} is silenced")
        return
    now = datetime.now(UTC)
    shown = TextTable(["id>", "until", "what", "by", "reason~"])
    for one in found:
        what = covered(home, one)
        shown.add(
            str(one["id"]), clock(one["until"], now), what, one["by"], Text(one["reason"], "dim")
        )
    out().print(shown.table(out().width))


def covered(home: str, one: "AlertSilenceOut") -> str:
    """Return what a silence covers, as people say it."""
    parts = [
        f"{name} {pattern}"
        for name, pattern in (
            ("workflow", one["workflow"]),
            ("task", one["task"]),
            ("rule", one["rule"]),
        )
        if pattern
    ]
    return ", ".join(parts) or f"anything of project {home}"


def unsilence(
    silence_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of a silence.")],
    project: Project = None,
    data: Data = None,
) -> None:
    """End a silence."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        client.end_alert_silence(project or DEFAULT_PROJECT, silence_id)
    say(f"silence {silence_id} is over")


def try_channel(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="Name of a channel.")],
    to: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Where to, if the channel needs it; repeatable."),
    ] = None,
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="How long to wait for what comes of it.")
    ] = "60s",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Send a test by a channel, and say what its other side has answered."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.timing.durations import InvalidDuration, parse_duration

    try:
        patience_s = parse_duration(timeout)
    except InvalidDuration as error:
        raise typer.BadParameter(str(error), param_hint="--timeout") from None
    home, until = project or DEFAULT_PROJECT, time.monotonic() + patience_s
    with ShoalClient.connect(data) as client:
        sent = client.test_alert_channel(home, channel, {"to": to or []})
        while True:
            found = client.get_alert_delivery(home, sent["id"])
            if found["state"] in ("SENT", "FAILED") or time.monotonic() >= until:
                break
            time.sleep(_LOOK_S)
    if as_json:
        print_json(found)
    elif found["state"] == "SENT":
        say(f"sent by {channel}: {found['answer']}")
    elif found["tries"]:
        say(f"not sent by {channel}: {found['answer']}", "red")
    else:
        say(f"no alert server has taken it within {timeout}; is one running?", "red")
    if found["state"] != "SENT":
        raise typer.Exit(ExitStatus.FAILED)
