"""``shoal why``: what an instance or a task waits for."""

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import WhyOut


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(why)


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

    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.cli.terminal.text import harmless
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
