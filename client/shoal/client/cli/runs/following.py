"""What became of a command: shown at once, or followed until the run has ended."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shoal.client.find import Api
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import CommandOut, InstanceDetail

Wait = Annotated[
    bool, typer.Option("--wait", "-w", help="Follow the run to its end; exit 0 if it succeeds.")
]
_LOG_TAIL_BYTES = 4096
_LOG_TAIL_LINES = 10
_MANY_TASKS = 30  # listed at the end of a run


def require_done(outcome: "CommandOut", as_json: bool) -> None:
    """End with status 1 if the command was refused."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.errors import Refused

    if outcome["state"] == "REFUSED":
        if as_json:
            print_json(outcome)
        raise Refused(outcome["type"], outcome["reason"] or "no reason was given")


def follow_up(
    api: "Api", client: "ShoalClient", outcome: "CommandOut", wait: bool, as_json: bool
) -> None:
    """Print which instance a command has started; with ``wait`` follow it to its end."""
    from shoal.client.cli.terminal.output import out, print_json, say

    require_done(outcome, as_json)
    instance_id = outcome["result_instance_id"]
    assert instance_id is not None, "the command is done"
    instance = client.get_instance(instance_id)
    text = (
        f"started {instance['project']}/{instance['workflow']} version {instance['version']} "
        f"as instance {instance_id}"
    )
    if wait:
        say(text)
        follow(api, client, instance_id, as_json)
    elif as_json:
        print_json(instance)
    else:
        out().print(text)
        say(f"`shoal instance {instance_id}` shows it", "dim")


def follow(api: "Api", client: "ShoalClient", instance_id: int, as_json: bool) -> None:
    """Show a run until it has ended, and how. Ends with status 1 unless it has succeeded."""
    from shoal.client.cli.terminal.output import print_json

    ended = _watched(api, instance_id)
    if as_json:
        print_json(ended)
    else:
        conclude(client, ended)
    if ended["state"] != "SUCCEEDED":
        raise typer.Exit(1)


def _watched(api: "Api", instance_id: int) -> "InstanceDetail":
    from shoal.client.cli.runs.watching import watch
    from shoal.client.cli.terminal.output import say

    try:
        return watch(api, instance_id)
    except KeyboardInterrupt:
        say(f"instance {instance_id} runs on; `shoal stop {instance_id}` ends it")
        raise


def conclude(client: "ShoalClient", instance: "InstanceDetail") -> None:
    """Print how a run ended: its tasks, and the end of the log of what failed."""
    from rich.text import Text

    from shoal.client.cli.runs.view import head_text, progress_text, tasks_table
    from shoal.client.cli.terminal.output import err, out
    from shoal.client.cli.terminal.text import harmless
    from shoal.client.errors import ClientError

    now = datetime.now(UTC)
    console = out()
    console.print(head_text(instance, now))
    rows = _MANY_TASKS if len(instance["tasks"]) > _MANY_TASKS else None
    console.print(tasks_table(instance, now, console.width, rows))
    if rows is not None:
        left = len(instance["tasks"]) - rows
        more = f"… {left:,} more tasks; `shoal instance {instance['id']}` shows all"
        console.print(Text(more, "dim"))
    console.print(progress_text(instance))
    if instance["reason"]:
        console.print(Text(instance["reason"]))
    failed = [task for task in instance["tasks"] if task["state"] == "FAILED"]
    if not failed:
        return
    first = failed[0]
    try:
        tail = client.get_log(first["id"], offset=-_LOG_TAIL_BYTES, limit=_LOG_TAIL_BYTES)["data"]
    except ClientError:
        tail = ""
    lines = tail.splitlines()[-_LOG_TAIL_LINES:]
    if lines:
        err().print(Text(f"\nthe log of {first['task']} ends with", "dim"))
        for line in lines:
            err().print(Text(f"  {harmless(line)}"), soft_wrap=True)
    err().print(Text(f"`shoal logs {first['id']}` shows all of it", "dim"))
