"""``shoal timeline`` and ``shoal attempts``: when the tasks of a run worked."""

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.listing import Limit, States, page_of, read_states
from shoal.client.cli.terminal.options import Data, InstanceId, Json

if TYPE_CHECKING:
    from rich.text import Text

    from shoal.client.rest.runs.types import BarJson

_NARROWEST, _WIDEST = 10, 60  # characters of a bar's room
_LEFT_AND_RIGHT = 50  # what stands beside it


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (timeline, attempts):
        app.command(rich_help_panel="Runs")(command)


def timeline(
    instance_id: InstanceId,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Also the earlier attempts of each task.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show when the tasks of an instance waited and worked, and which of them decided its end."""
    from shoal.client.cli.terminal.appearance import lasted, parse_time, state_text
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import Grid
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.timeline(instance_id, every=every)
    if as_json:
        print_json(found)
        return
    from rich.text import Text

    from shoal.core.timing.durations import format_duration

    now = datetime.now(UTC)
    bars = found["bars"]
    times = [parse_time(one["queued_at"] or one["started_at"]) for one in bars]
    began = min((one for one in times if one), default=None)
    if began is None:
        say(f"no task of instance {instance_id} has been queued yet")
        return
    end = max(parse_time(one["finished_at"]) or now for one in bars if one["queued_at"])
    room = max(_NARROWEST, min(_WIDEST, out().width - _LEFT_AND_RIGHT))
    shown = Grid(["task", "state", "waited>", "worked>", "time"])
    for bar in bars:
        name = bar["task"] if bar["attempt"] == 1 else f"{bar['task']} #{bar['attempt']}"
        shown.add(
            Text(name, "bold" if bar["is_critical"] else ""),
            state_text(bar["state"]),
            lasted(bar["queued_at"], bar["started_at"], now),
            lasted(bar["started_at"], bar["finished_at"], now),
            _drawn(bar, began, end, now, room),
        )
    out().print(shown.table(out().width, ("waited", "worked")))
    if found["critical_path"]:
        path = " → ".join(found["critical_path"])
        say(f"critical path: {path}; it worked for {format_duration(found['critical_s'])}")


def _drawn(bar: "BarJson", began: datetime, end: datetime, now: datetime, room: int) -> "Text":
    """Return a line of ``room`` characters: dots while it was queued, a bar while it worked."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import LOOKS, parse_time

    def column(moment: datetime | None) -> int:
        whole = max((end - began).total_seconds(), 0.001)
        share = ((moment or now) - began).total_seconds() / whole
        return max(0, min(room, round(share * room)))

    if bar["queued_at"] is None and bar["started_at"] is None:
        return Text("")
    queued = column(parse_time(bar["queued_at"] or bar["started_at"]))
    if bar["started_at"] is None:
        stop = column(parse_time(bar["finished_at"]))
        return Text.assemble(" " * queued, ("·" * max(1, stop - queued), "dim"))
    start = min(column(parse_time(bar["started_at"])), room - 1)
    worked = max(1, column(parse_time(bar["finished_at"])) - start)
    style = LOOKS.get(bar["state"], ("", ""))[1]
    return Text.assemble(
        " " * min(queued, start), ("·" * max(0, start - queued), "dim"), ("━" * worked, style)
    )


def attempts(
    instance_id: InstanceId,
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="Only of this task.")] = None,
    state: States = None,
    limit: Limit = 50,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the attempts of an instance, newest first: where each worked and why it ended."""
    from shoal.client.cli.terminal.appearance import clock, lasted, state_text
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import Grid
    from shoal.client.rest.client import ShoalClient
    from shoal.core.runs.states import TaskState

    states = read_states(state, TaskState)
    with ShoalClient.connect(data) as client:
        pages = client.task_instances(
            page=page_of(limit), instance_id=instance_id, task=task, states=states
        )
        found = list(islice(pages, limit))
        if not found:
            client.instance(instance_id)  # it may not be there
    if as_json:
        print_json(found)
        return
    if not found:
        say("no attempt fits")
        return
    now = datetime.now(UTC)
    shown = Grid(["attempt>", "task", "#>", "state", "started", "lasted>", "worker", "why~"])
    for one in found:
        shown.add(
            str(one["id"]),
            one["task"],
            str(one["attempt"]),
            state_text(one["state"]),
            clock(one["started_at"], now),
            lasted(one["started_at"], one["finished_at"], now),
            one["worker"] or "",
            one["reason"] or "",
        )
    out().print(shown.table(out().width, ("worker", "started")))
