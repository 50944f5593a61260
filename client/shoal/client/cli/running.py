"""``shoal run`` and the requests about a run: ``pause``, ``resume``, ``stop``, ``rerun``,
``recover``."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.client.cli.options import Data, InstanceId, Json, Project, WorkflowName, find_workflow

if TYPE_CHECKING:
    from shoal.client.find import Api
    from shoal.client.rest import ShoalClient
    from shoal.client.rest_types import CommandJson, InstanceDetailJson

Wait = Annotated[
    bool, typer.Option("--wait", "-w", help="Follow the run to its end; exit 0 if it succeeds.")
]
_LOG_TAIL_BYTES = 4096
_LOG_TAIL_LINES = 10
_MANY_TASKS = 30  # listed at the end of a run


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (run, pause, resume, stop, rerun, recover):
        app.command(rich_help_panel="Runs")(command)


def run(
    name: WorkflowName,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="A parameter; repeatable."),
    ] = None,
    wait: Wait = False,
    version: Annotated[int | None, typer.Option(min=1, help="Default: the newest.")] = None,
    logical_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The time the run is for, such as 2026-11-21T06:00; default: now. Without an "
            "offset it is in the workflow's time zone.",
        ),
    ] = None,
    priority: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="HIGHEST, HIGH, MEDIUM, LOW or LOWEST.")
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Start a workflow."""
    from shoal.client.find import find_api
    from shoal.client.rest import ShoalClient

    parameters = parse_parameters(parameter or ())
    level = _priority(priority)
    api = find_api(data)
    with ShoalClient.of(api) as client:
        home, name = find_workflow(client, name, project)
        moment = _logical_time(client, home, name, logical_time)
        command = client.start(
            home,
            name,
            version=version,
            parameters=parameters,
            logical_time=moment,
            priority=level,
        )
        _follow_up(api, client, client.outcome(command), "started", wait, as_json)


def pause(instance_id: InstanceId, data: Data = None, as_json: Json = False) -> None:
    """Let running tasks of an instance finish and start no others."""
    _request("PAUSE", instance_id, data, as_json)


def resume(instance_id: InstanceId, data: Data = None, as_json: Json = False) -> None:
    """Continue an instance that is paused or stopped."""
    _request("RESUME", instance_id, data, as_json)


def stop(instance_id: InstanceId, data: Data = None, as_json: Json = False) -> None:
    """Kill the running tasks of an instance and start no others."""
    _request("STOP", instance_id, data, as_json)


def recover(
    instance_id: InstanceId, wait: Wait = False, data: Data = None, as_json: Json = False
) -> None:
    """Run the failed tasks of an instance again and keep its successes."""
    _request("RECOVER", instance_id, data, as_json, wait)


def rerun(
    instance_id: InstanceId, wait: Wait = False, data: Data = None, as_json: Json = False
) -> None:
    """Run an instance's version and parameters again, as a new instance."""
    _request("RERUN", instance_id, data, as_json, wait)


_DONE = {
    "PAUSE": "is being paused",
    "RESUME": "goes on",
    "STOP": "is being stopped",
    "RECOVER": "runs its failed tasks again",
}


def _request(kind: Any, instance_id: int, data: Any, as_json: bool, wait: bool = False) -> None:
    from shoal.client.cli.output import out, print_json
    from shoal.client.find import find_api
    from shoal.client.rest import ShoalClient

    api = find_api(data)
    with ShoalClient.of(api) as client:
        outcome = client.outcome(client.send(kind, instance_id=instance_id))
        if wait or kind == "RERUN":
            _follow_up(api, client, outcome, "started", wait, as_json)
            return
    _require_done(outcome, as_json)
    if as_json:
        print_json(outcome)
    else:
        out().print(f"instance {instance_id} {_DONE[kind]}")


def _require_done(outcome: "CommandJson", as_json: bool) -> None:
    """End with status 1 if the command was refused."""
    from shoal.client.cli.output import print_json
    from shoal.client.errors import Refused

    if outcome["state"] == "REFUSED":
        if as_json:
            print_json(outcome)
        raise Refused(outcome["type"], outcome["reason"] or "no reason was given")


def _follow_up(
    api: "Api",
    client: "ShoalClient",
    outcome: "CommandJson",
    verb: str,
    wait: bool,
    as_json: bool,
) -> None:
    """Say what a command made, and follow it to its end if that is wanted."""
    from shoal.client.cli.output import out, print_json, say

    _require_done(outcome, as_json)
    instance_id = outcome["result_instance_id"]
    assert instance_id is not None, "the command is done"
    instance = client.instance(instance_id)
    text = (
        f"{verb} {instance['project']}/{instance['workflow']} version {instance['version']} "
        f"as instance {instance_id}"
    )
    if not wait:
        if as_json:
            print_json(instance)
        else:
            out().print(text)
            say(f"`shoal instance {instance_id}` shows it", "dim")
        return
    say(text)
    ended = _watched(api, instance_id)
    if as_json:
        print_json(ended)
    else:
        conclude(client, ended)
    if ended["state"] != "SUCCEEDED":
        raise typer.Exit(1)


def _watched(api: "Api", instance_id: int) -> "InstanceDetailJson":
    from shoal.client.cli.output import say
    from shoal.client.cli.watching import watch

    try:
        return watch(api, instance_id)
    except KeyboardInterrupt:
        say(f"instance {instance_id} runs on; `shoal stop {instance_id}` ends it")
        raise


def conclude(client: "ShoalClient", instance: "InstanceDetailJson") -> None:
    """Print how a run ended: its tasks, and the end of the log of what failed."""
    from rich.text import Text

    from shoal.client.cli.output import err, out
    from shoal.client.cli.run_view import head_text, progress_text, tasks_table
    from shoal.client.cli.terminal_text import harmless
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
        tail = client.log(first["id"], -_LOG_TAIL_BYTES, _LOG_TAIL_BYTES)["data"]
    except ClientError:
        tail = ""
    lines = tail.splitlines()[-_LOG_TAIL_LINES:]
    if lines:
        err().print(Text(f"\nthe log of {first['task']} ends with", "dim"))
        for line in lines:
            err().print(Text(f"  {harmless(line)}"), soft_wrap=True)
    err().print(Text(f"`shoal logs {first['id']}` shows all of it", "dim"))


# -- arguments -------------------------------------------------------------------------------


def parse_parameters(given: Any) -> dict[str, str]:
    """Return KEY=VALUE texts as a mapping. Raises BadParameter."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="-p")
        if key in found:
            raise typer.BadParameter(f"{key} is given twice", param_hint="-p")
        found[key] = value
    return found


def _priority(text: str | None) -> str | None:
    if text is None:
        return None
    from shoal.core.priority import Priority

    try:
        return Priority.read(int(text) if text.isdecimal() else text).name
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--priority") from None


def _logical_time(
    client: "ShoalClient", project: str, name: str, text: str | None
) -> datetime | None:
    if text is None:
        return None
    from zoneinfo import ZoneInfo

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time; write 2026-11-21, 2026-11-21T06:00 or 2026-11-21T06:00+01:00",
            param_hint="--logical-time",
        ) from None
    if moment.tzinfo is None:
        zone = client.workflow(project, name)["definition"].get("timezone", "UTC")
        moment = moment.replace(tzinfo=ZoneInfo(zone))
    return moment
