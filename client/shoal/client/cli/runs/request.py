"""Requests about a run: ``pause``, ``resume``, ``stop``, ``recover``, ``rerun``, ``rerun-tasks``,
``label``, and about one task of it: ``kill``, ``force``."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.client.cli.terminal.options import (
    Data,
    Downstream,
    InstanceId,
    Json,
    Only,
    Upstream,
    Wait,
    parse_labels,
    selection_mode,
)

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import CommandOut

TaskInstanceId = Annotated[
    int,
    typer.Argument(metavar="ID", min=1, help="Id of a task instance; `shoal instance` shows them."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (pause, resume, stop, recover, rerun, rerun_tasks, kill, force, label):
        app.command(rich_help_panel="Runs")(command)


def pause(instance_id: InstanceId, data: Data = None, as_json: Json = False) -> None:
    """Let running tasks of an instance finish and start no others."""
    _request(_about("PAUSE", instance_id), "is being paused", data, as_json)


def resume(
    instance_id: InstanceId, wait: Wait = False, data: Data = None, as_json: Json = False
) -> None:
    """Continue an instance that is paused or stopped."""
    _request(_about("RESUME", instance_id), "goes on", data, as_json, wait)


def stop(instance_id: InstanceId, data: Data = None, as_json: Json = False) -> None:
    """Kill the running tasks of an instance and start no others."""
    _request(_about("STOP", instance_id), "is being stopped", data, as_json)


def recover(
    instance_id: InstanceId, wait: Wait = False, data: Data = None, as_json: Json = False
) -> None:
    """Run the failed tasks of an instance again and keep its successes."""
    _request(_about("RECOVER", instance_id), "runs its failed tasks again", data, as_json, wait)


def rerun(
    instance_id: InstanceId, wait: Wait = False, data: Data = None, as_json: Json = False
) -> None:
    """Run an instance's version and parameters again, as a new instance."""
    from shoal.client.cli.runs.progress import follow_up
    from shoal.client.discovery import find_api
    from shoal.client.rest.client import ShoalClient

    api = find_api(data)
    with ShoalClient.of(api) as client:
        outcome = client.outcome(
            client.create_command({"type": "RERUN", "instance_id": instance_id})
        )
        follow_up(api, client, outcome, wait, as_json)


def rerun_tasks(
    instance_id: InstanceId,
    tasks: Annotated[list[str], typer.Argument(metavar="TASK", help="Names of tasks.")],
    only: Only = False,
    upstream: Upstream = False,
    downstream: Downstream = False,
    wait: Wait = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Run chosen tasks of an ended instance again, in the same instance."""
    mode = selection_mode(tasks, only, upstream, downstream)

    def send(client: "ShoalClient") -> "CommandOut":
        return client.create_command(
            {"type": "RERUN_TASKS", "instance_id": instance_id, "tasks": tasks, "mode": mode}
        )

    _request(send, "runs the chosen tasks again", data, as_json, wait)


def kill(
    task_instance_id: TaskInstanceId,
    wait: Wait = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """End one task of a run; the others go on."""

    def send(client: "ShoalClient") -> "CommandOut":
        return client.create_command({"type": "KILL_TASK", "task_instance_id": task_instance_id})

    done = f"kills task instance {task_instance_id} and goes on"
    _request(send, done, data, as_json, wait)


def force(
    task_instance_id: TaskInstanceId,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why; kept for those who look at it later.")
    ],
    wait: Wait = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Take a task that failed for a success; the run goes on behind it."""

    def send(client: "ShoalClient") -> "CommandOut":
        return client.create_command(
            {
                "type": "FORCE_SUCCESS",
                "task_instance_id": task_instance_id,
                "reason": reason,
            }
        )

    done = f"takes task instance {task_instance_id} for a success"
    _request(send, done, data, as_json, wait)


def label(
    instance_id: InstanceId,
    change: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE…", help="Labels to set; KEY- removes one."),
    ],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Change the labels of an instance."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    removed = [text[:-1] for text in change if "=" not in text and text.endswith("-")]
    kept = [text for text in change if not ("=" not in text and text.endswith("-"))]
    changes: dict[str, str | None] = {**parse_labels(kept), **dict.fromkeys(removed)}
    with ShoalClient.connect(data) as client:
        labels = client.change_labels(instance_id, {"labels": changes})["labels"]
    if as_json:
        print_json(labels)
    else:
        told = "  ".join(f"{key}={value}" for key, value in labels.items())
        say(f"instance {instance_id}: {told or 'no labels'}")


def _about(kind: Any, instance_id: int) -> "Callable[[ShoalClient], CommandOut]":
    return lambda client: client.create_command({"type": kind, "instance_id": instance_id})


def _request(
    send: "Callable[[ShoalClient], CommandOut]",
    done: str,
    data: Any,
    as_json: bool,
    wait: bool = False,
) -> None:
    """Send a command about an instance; say that it was carried out, or follow the run."""
    from shoal.client.cli.runs.progress import follow, require_done
    from shoal.client.cli.terminal.output import print_result, say
    from shoal.client.discovery import find_api
    from shoal.client.rest.client import ShoalClient

    api = find_api(data)
    with ShoalClient.of(api) as client:
        outcome = client.outcome(send(client))
        require_done(outcome, as_json)
        instance_id = outcome["instance_id"]
        assert instance_id is not None, "it is about an instance"
        text = f"instance {instance_id} {done}"
        if wait:
            say(text)
            follow(api, client, instance_id, as_json)
        else:
            print_result(text, outcome, as_json=as_json)
