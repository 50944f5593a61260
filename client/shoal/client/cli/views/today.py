"""``shoal today``: what happens around now."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import MOST_OF_A_PAGE, Data, Json, in_utc

if TYPE_CHECKING:
    from rich.table import Table

    from shoal.client.rest.operations.generated.types import LaneOut

_STYLES = {"late": "yellow", "failed": "red", "running": "blue", "done": "green"}


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(today)


def today(
    since: Annotated[
        datetime | None,
        typer.Option(metavar="TIME", help="Begin at this time (UTC); default: 18 hours ago."),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(metavar="TIME", help="End at this time (UTC); default: 12 hours ahead."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", min=1, max=MOST_OF_A_PAGE, help="How many workflows."),
    ] = 50,
    project: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="Only its workflows.")
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show what happens around now by workflow: what is late first, then what failed or waits."""
    from shoal.client.cli.terminal.appearance import clock, parse_time, plural
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_today(
            project=project, since=in_utc(since), until=in_utc(until), limit=limit
        )
    if as_json:
        print_json(found)
        return
    now = parse_time(found["now"])
    assert now is not None, "the API says when it has looked"
    period = f"from {clock(found['since'], now)} to {clock(found['until'], now)}"
    if not found["items"]:
        say(f"nothing happens {period}")
        return
    out().print(lanes_table(found["items"], now, out().width))
    ranks = ", ".join(f"{count:,} {rank}" for rank, count in found["ranks"].items() if count)
    say(f"{ranks}; {period}")
    left = sum(found["ranks"].values()) - len(found["items"])
    if found.get("next"):
        say(f"{plural(left, 'more workflow')}; -n shows more at a time")
    if found["is_more"]:
        say("there is more in this time than was looked at: --since and --until narrow it")


def lanes_table(lanes: "list[LaneOut]", now: datetime, width: int) -> "Table":
    """Return a line for each workflow, with its newest run, ``width`` characters wide."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock, counts_text, lasted, state_text
    from shoal.client.cli.terminal.tables import TextTable

    columns = ["workflow", "status", "runs", "newest>", "state", "created", "lasted>"]
    shown = TextTable([*columns, "next fire", "~"])
    for lane in lanes:
        newest = lane["runs"][0] if lane["runs"] else None
        counts: dict[str, int] = {}
        for run in lane["runs"]:
            counts[run["state"]] = counts.get(run["state"], 0) + 1
        runs = counts_text(counts).append("  …" if lane["is_more"] else "", "dim")
        shown.add(
            Text.assemble((f"{lane['project']}/", "dim"), lane["workflow"]),
            Text(lane["rank"], _STYLES.get(lane["rank"], "")),
            runs,
            str(newest["id"]) if newest else "",
            state_text(newest["state"]) if newest else "",
            Text(clock(newest["created_at"], now) if newest else "", "dim"),
            lasted(newest["started_at"], newest["finished_at"], now) if newest else "",
            Text(clock(lane["next_fires"][0]["at"], now) if lane["next_fires"] else "", "dim"),
            Text(_note(lane, now), "dim"),
        )
    return shown.table(width, ("created", "lasted", "runs", "next fire"))


def _note(lane: "LaneOut", now: datetime) -> str:
    """Return what is late, when the newest run will end, or why it waits or failed."""
    from shoal.client.cli.runs.view import expected_facts

    if lane["late"]:
        return "; ".join(one["said"]["text"] for one in lane["late"])
    newest = lane["runs"][0] if lane["runs"] else None
    if newest is None:
        return ""
    waits_for = newest["waits_for"]["text"] if newest["waits_for"] else ""
    said = [waits_for, *expected_facts(newest, now)]
    return "; ".join(filter(None, said)) or newest["reason"] or ""
