"""``shoal today`` and ``shoal history``: what matters now, and what has happened."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.listing import Limit
from shoal.client.cli.terminal.options import Data, Json, find_workflow

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rich.text import Text

    from shoal.client.rest.types import HappenedJson, LaneJson

_MARKS = {"late": "✗", "failed": "✗", "waiting": "○", "running": "●", "done": "✓"}
_STYLES = {"late": "red", "failed": "red", "waiting": "cyan", "running": "blue", "done": "green"}
_OnlyProject = Annotated[
    str | None, typer.Option("--project", "-p", metavar="PROJECT", help="Only this project.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (today, history):
        app.command(rich_help_panel="Runs")(command)


def today(
    project: _OnlyProject = None,
    hours: Annotated[int, typer.Option(min=1, max=168, help="How many hours to look back.")] = 18,
    limit: Limit = 50,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the workflows of today: late and failed ones first, and when each fires next."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import Grid
    from shoal.client.rest.client import ShoalClient

    now = datetime.now(UTC)
    with ShoalClient.connect(data) as client:
        found = list(islice(client.today(project, now - timedelta(hours=hours)), limit))
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"nothing ran in the last {hours} hours, and nothing fires in the next 12")
        return
    shown = Grid(["", "workflow", "run>", "lasted>", "next", "why~"])
    for lane in found:
        shown.add(*_lane(lane, now))
    out().print(shown.table(out().width, ("lasted", "next")))


def _lane(lane: "LaneJson", now: datetime) -> "list[str | Text]":
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock, lasted

    run = lane["runs"][0] if lane["runs"] else None
    rank = lane["rank"]
    why = [late["said"]["text"] for late in lane["late"]]
    if run is not None:
        waits = run["waits_for"]
        why += [text for text in (run["reason"], waits["text"] if waits else None) if text]
    return [
        Text(f"{_MARKS.get(rank, '?')} {rank}", _STYLES.get(rank, "")),
        Text.assemble((f"{lane['project']}/", "dim"), lane["workflow"]),
        str(run["id"]) if run else "",
        lasted(run["started_at"], run["finished_at"], now) if run else "",
        clock(lane["next_fires"][0]["at"], now) if lane["next_fires"] else "",
        Text("; ".join(why), "dim"),
    ]


def history(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A workflow, also PROJECT/NAME; none: all of them."),
    ] = None,
    project: _OnlyProject = None,
    instance: Annotated[
        int | None, typer.Option(min=1, metavar="INSTANCE", help="Only of this instance.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Only of this kind, such as command, instance.state, task.state or "
            "partition.takeover; repeatable.",
        ),
    ] = None,
    limit: Limit = 50,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List what has happened, the latest first: states, commands with who sent them, takeovers."""
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import Grid
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, workflow = project, None
        if name is not None:
            home, workflow = find_workflow(client, name, project)
        found = list(islice(client.history(kind or (), home, workflow, instance), limit))
    if as_json:
        print_json(found)
        return
    if not found:
        say("nothing of this has happened, or it is forgotten by now")
        return
    now = datetime.now(UTC)
    shown = Grid(["at", "kind", "instance>", "what~", "by"])
    for one in found:
        instance_id = one["instance_id"]
        shown.add(
            clock(one["at"], now),
            one["kind"],
            "" if instance_id is None else str(instance_id),
            _what(one),
            one["by"] or "",
        )
    out().print(shown.table(out().width, ("by", "kind")))


def _what(one: "HappenedJson") -> "Text":
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import state_text

    data: Mapping[str, Any] = one["data"]
    said = Text(" ").join(
        Text(str(data[key])) for key in ("type", "workflow", "task") if data.get(key) is not None
    )
    if one["kind"] == "partition.takeover":
        before = f" from {data['previous_owner']}" if data.get("previous_owner") else ""
        return Text(f"partition {data['partition']} to {data['owner']}{before}")
    state = data.get("state")
    if state is not None:
        said = Text(" ").join([said, state_text(state)] if said.plain else [state_text(state)])
    if data.get("reason"):
        said.append(f"  {data['reason']}", "dim")
    return said
