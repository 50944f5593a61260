"""``shoal logs``: what a task wrote."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import PastAttemptOut, TaskOut

    AnyAttempt: TypeAlias = TaskOut | PastAttemptOut
    Log: TypeAlias = tuple[
        int | None, Iterator[bytes]
    ]  # its bytes, if that is known, and the content


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Runs")(logs)


def logs(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="Id of a task instance, or INSTANCE:TASK for the newest attempt of a task.",
        ),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")
    ] = False,
    download: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save to a file or into a folder.")
    ] = None,
    data: Data = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With the task instance, as one JSON object.")
    ] = False,
) -> None:
    """Show the log of a task."""
    from shoal.client.cli.runs.past import or_past, past_attempt, past_log
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    if follow and (download or as_json):
        raise typer.BadParameter("a log that is followed goes to the screen", param_hint="--follow")
    with ShoalClient.connect(data) as client:
        instance, _, name = task.partition(":")
        if name and instance.isdecimal():
            _, gone = or_past(client, int(instance), lambda: client.get_instance(int(instance)))
            if gone is not None:
                past = past_attempt(gone, name)
                with past_log(client, gone["id"], past["id"]) as log:
                    _write(log, past, f"{gone['id']}-{name}-{past['attempt']}", download, as_json)
                if follow:
                    say(f"{name} {past['state']}: its run is over, and was purged", "dim")
                return
        attempt = _find_attempt(client, task)
        if follow:
            _follow(client, attempt)
            return
        title = f"{attempt['workflow_instance_id']}-{attempt['task']}-{attempt['attempt']}"
        with client.download_log(attempt["id"]) as response:
            size = int(response.headers.get("Content-Length", 0))
            _write((size, response.iter_bytes()), attempt, title, download, as_json)


def _write(
    log: "Log", attempt: "AnyAttempt", title: str, download: Path | None, as_json: bool
) -> None:
    """Write a log to where it was asked for. ``title``: of a file in a folder."""
    from shoal.client.cli.terminal.output import print_json

    if download is not None:
        _save(log, attempt, download / f"{title}.log" if download.is_dir() else download, as_json)
    elif as_json:
        text = b"".join(log[1]).decode("utf-8", "replace")
        print_json({"task_instance": attempt, "log": text})
    else:
        _show(log[1])


def _find_attempt(client: "ShoalClient", text: str) -> "TaskOut":
    from shoal.client.cli.runs.view import newest_attempts
    from shoal.client.cli.terminal.options import no_task

    if text.isdecimal():
        from shoal.client.errors import ApiProblem, NotFound

        try:
            return client.get_task_instance(int(text))
        except ApiProblem as problem:
            if problem.kind != "not-found":
                raise
            raise NotFound(
                f"{problem}; if its run was purged, `shoal logs INSTANCE:TASK` "
                "looks into the history"
            ) from problem
    instance, colon, name = text.partition(":")
    if not (colon and instance.isdecimal() and name):
        raise typer.BadParameter(f"{text!r} is neither an id nor INSTANCE:TASK", param_hint="TASK")
    tasks = newest_attempts(client.get_instance(int(instance))["tasks"])
    if name not in tasks:
        raise no_task(int(instance), name, tasks)
    return _with_a_log(client, int(instance), tasks[name])


def _with_a_log(client: "ShoalClient", instance: int, newest: "TaskOut") -> "TaskOut":
    """Return the last look of a task that waits for its next one, which has no log yet."""
    if newest["started_at"] or not newest.get("looks"):
        return newest
    tasks = client.get_instance(instance, attempts="all")["tasks"]
    looks = [one for one in tasks if one["task"] == newest["task"] and one["started_at"]]
    return max(looks, key=lambda one: one["attempt"], default=newest)


def _show(chunks: "Iterable[bytes]") -> None:
    """Write the bytes as they are; a terminal gets harmless text."""
    import codecs

    from shoal.client.cli.terminal.appearance import harmless

    if sys.stdout.isatty():
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for chunk in chunks:
            sys.stdout.write(harmless(decoder.decode(chunk)))
    else:
        sys.stdout.flush()
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
    sys.stdout.flush()


def _follow(client: "ShoalClient", attempt: "TaskOut") -> None:
    from shoal.client.cli.terminal.appearance import harmless
    from shoal.client.cli.terminal.output import say
    from shoal.client.errors import LogBroken

    terminal = sys.stdout.isatty()
    if attempt["started_at"] is None and attempt["finished_at"] is None:
        say(f"{attempt['task']} has not started; its log will follow", "dim")

    def is_lost() -> bool:
        return client.get_task_instance(attempt["id"])["state"] == "LOST"

    broken: LogBroken | None = None
    try:
        for chunk in client.follow(attempt["id"], is_lost=is_lost):
            sys.stdout.write(harmless(chunk.data) if terminal else chunk.data)
            sys.stdout.flush()
    except LogBroken as error:
        broken = error
    ended = _see_the_end(client, attempt)
    if terminal or ended["state"] == "LOST":
        reason = f": {ended['reason']}" if ended["reason"] else ""
        say(f"{ended['task']} {ended['state']}{reason}", "dim")
    if ended["state"] == "LOST":
        say(_what_follows(client, ended))
    if broken is not None:
        raise broken


# How long the state of an attempt may take to follow the end of its log: a worker that is lost is
# so only when its session has run out.
PATIENCE_S = 30.0


def _see_the_end(client: "ShoalClient", attempt: "TaskOut") -> "TaskOut":
    """Return the attempt as it ended, or as it is if that takes too long."""
    import time

    deadline, pause_s = time.monotonic() + PATIENCE_S, 0.05
    while True:
        found = client.get_task_instance(attempt["id"])
        if found["finished_at"] is not None or time.monotonic() > deadline:
            return found
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 1.0)


def _what_follows(client: "ShoalClient", lost: "TaskOut") -> str:
    """Say which attempt takes the place of a lost one."""
    from shoal.client.cli.runs.view import newest_attempts

    instance = client.get_instance(lost["workflow_instance_id"])
    newest = newest_attempts(instance["tasks"]).get(lost["task"], lost)
    if newest["attempt"] > lost["attempt"]:
        return f"attempt {newest['attempt']} follows: shoal logs -f {newest['id']}"
    return f"no further attempt was made; the instance is {instance['state']}"


def _save(log: "Log", attempt: "AnyAttempt", target: Path, as_json: bool) -> None:
    """Save a log; a file appears only when it is whole."""
    from shoal.client.cli.terminal.output import print_json, progress, say
    from shoal.client.errors import ClientError

    total, chunks = log
    partial = target.with_name(f".{target.name}.partial")
    size = 0
    try:
        with partial.open("wb") as file, progress("downloading", in_bytes=True) as shown:
            bar = shown.add_task("", total=total)
            for chunk in chunks:
                size += file.write(chunk)
                shown.update(bar, completed=size)
        partial.replace(target)
    except OSError as error:
        raise ClientError(f"cannot write {target}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
    if as_json:
        print_json({"task_instance": attempt, "file": str(target), "bytes": size})
    else:
        say(f"{size:,} bytes in {target}")
