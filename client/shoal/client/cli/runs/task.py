"""``shoal task``: one attempt of one task, with what it has given on."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Runs")(task)


def task(
    task_instance_id: Annotated[
        int, typer.Argument(metavar="ID", min=1, help="Id of a task instance.")
    ],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show one attempt of a task: state, times, and its outputs."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock, lasted, state_text
    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.cli.terminal.tables import Grid
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_task_instance(task_instance_id)
    if as_json:
        print_json(found)
        return
    now, console = datetime.now(UTC), out()
    where = f"instance {found['workflow_instance_id']}  attempt {found['attempt']}  "
    head = Text.assemble((found["task"], "bold"), f"  {where}", state_text(found["state"]))
    if found["started_at"]:
        took = lasted(found["started_at"], found["finished_at"], now)
        head.append(f"  started {clock(found['started_at'], now)}, {took}")
    console.print(head, soft_wrap=True)
    if found["environment"]:
        console.print(Text(f"environment {found['environment']}", "dim"), soft_wrap=True)
    if found["reason"]:
        console.print(Text(found["reason"]), soft_wrap=True)
    if found.get("outputs"):
        shown = Grid(["output", "value~"])
        for name, value in sorted(found["outputs"].items()):
            shown.add(name, _shortened(value))
        console.print()
        console.print(shown.table(console.width))


def _shortened(value: str, longest: int = 200) -> str:
    """Return a value for people; --json has all of it."""
    from shoal.client.cli.terminal.text import harmless

    text = harmless(value)
    return text if len(text) <= longest else f"{text[:longest]}… ({len(value):,} characters)"
