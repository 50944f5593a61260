"""``shoal why``: what an instance or a task waits for; ``shoal task``: one attempt of a task."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import WhyOut


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (task, why):
        app.command(rich_help_panel="Runs")(command)


def why(
    target: Annotated[
        str,
        typer.Argument(
            metavar="ID[/TASK]",
            help="Id of an instance, or an instance's id and the name of one of its tasks.",
        ),
    ],
    task_instance: Annotated[
        bool, typer.Option("--task-instance", "-t", help="ID is the id of a task instance.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Explain what an instance or a task waits for, layer by layer."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import harmless
    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = _ask(client, target, task_instance)
    if as_json:
        print_json(found)
        return
    what = f"instance {found['instance_id']} of {found['project']}/{found['workflow']}"
    if found["task_instance_id"] is not None:
        what = f"task {found['task']} (task instance {found['task_instance_id']}) of {what}"
    console = out()
    console.print(Text(f"{what} is {found['state']}", "bold"))
    for finding in found["findings"]:
        mark, style = ("•", "yellow") if finding["waits"] else (" ", "dim")
        line = f"{mark} {finding['layer']:<11} {harmless(finding['text'])}"
        console.print(Text(line, style), soft_wrap=True)
    if not found["findings"]:
        console.print(Text("nothing keeps it waiting", "dim"))


def _ask(client: "ShoalClient", target: str, is_task_instance: bool) -> "WhyOut":
    number, slash, task = target.partition("/")
    if not number.isdecimal() or int(number) < 1 or (slash and (is_task_instance or not task)):
        raise typer.BadParameter(
            f"{target!r} is not an id; write 17 for an instance, 17/report for its task report, or "
            "-t 91 for a task instance",
            param_hint="ID[/TASK]",
        )
    if is_task_instance:
        return client.explain_task_instance(int(number))
    if not slash:
        return client.explain_instance(int(number))
    tasks = client.get_instance(int(number))["tasks"]
    ids = {one["task"]: one["id"] for one in tasks}
    if task not in ids:
        from difflib import get_close_matches

        close = get_close_matches(task, ids, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise typer.BadParameter(f"instance {number} has no task {task!r}{hint}")
    return client.explain_task_instance(ids[task])


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
    from shoal.client.cli.terminal.tables import TextTable
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
        shown = TextTable(["output", "value~"])
        for name, value in sorted(found["outputs"].items()):
            shown.add(name, _shortened(value))
        console.print()
        console.print(shown.table(console.width))


def _shortened(value: str, longest: int = 200) -> str:
    """Return a value for people; --json has all of it."""
    from shoal.client.cli.terminal.appearance import harmless

    text = harmless(value)
    return text if len(text) <= longest else f"{text[:longest]}… ({len(value):,} characters)"
