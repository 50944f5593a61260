"""``shoal grid``: the tasks of a workflow by its last runs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json, Project, WorkflowName, find_workflow

if TYPE_CHECKING:
    from shoal.client.rest.types import GridJson


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(grid)


def grid(
    name: WorkflowName,
    runs: Annotated[
        int, typer.Option("--runs", "-n", min=1, max=100, help="How many runs, the last ones.")
    ] = 30,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the tasks of a workflow by its last runs: which fails again and again, and since when.

    A column is a run, the latest logical time on the right. A row is a task, a sign its state.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, workflow = find_workflow(client, name, project)
        found = client.grid(home, workflow, runs)
    if as_json:
        print_json(found)
    elif not found["runs"]:
        say(f"{home}/{workflow} has not run yet")
    else:
        _show(found)


def _show(found: "GridJson") -> None:
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import LOOKS, clock, plural
    from shoal.client.cli.terminal.output import out

    width = max(len(one["name"]) for one in found["tasks"]) if found["tasks"] else 4
    width = min(max(width, len("run")), 40)
    room = max(1, out().width - width - 2)
    runs = found["runs"][:room][::-1]
    states = {one["cell"]: one["state"] for one in found["legend"]}
    rows: list[tuple[str, Sequence[str | None]]] = [("run", [run["state"] for run in runs])]
    for number, task in enumerate(found["tasks"]):
        rows.append((task["name"], [states.get(run["cells"][number]) for run in runs]))
    for name, cells in rows:
        line = Text(f"{name[:width]:<{width}}  ", "" if name != "run" else "bold")
        for state in cells:
            mark, style = LOOKS.get(state, ("?", "")) if state else (" ", "")
            line.append(mark, style)
        out().print(line)
    said = [clock(one["logical_time"], datetime.now(UTC)) for one in (runs[0], runs[-1])]
    count = plural(len(runs), "run")
    out().print(Text(f"{count}, {' to '.join(dict.fromkeys(said))}", "dim"))
