"""What became of a command: shown at once, or followed until the run has ended."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from shoal.client.discovery import Api
from shoal.client.errors import TRANSIENT, ApiProblem, ApiUnreachable
from shoal.core.runs.states import FINISHED_WORKFLOW

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import (
        CommandOut,
        InstanceDetail,
        ProgressOut,
    )

T = TypeVar("T")

PATIENCE_S = 120.0  # an API that is started again comes back within this
_PAUSE_S = 1.0
FINISHED = frozenset(state.value for state in FINISHED_WORKFLOW)
_FRAME_S = 0.25  # between two pictures: durations tick
_LOOK_S = 0.1  # at least, between two reads of a run that changes
_LOOK_WITHOUT_NEWS_S = 3.0  # events may be lost with the API; then this finds what happened
_PROGRESS_EVERY_S = 1.0
_LOG_TAIL_BYTES = 4096
_LOG_TAIL_LINES = 10
_MANY_TASKS = 30  # listed at the end of a run


def require_done(outcome: "CommandOut", as_json: bool) -> None:
    """End with status 1 if the command was refused."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.errors import CommandRefused

    if outcome["state"] == "REFUSED":
        if as_json:
            print_json(outcome)
        raise CommandRefused(outcome["type"], outcome["reason"] or "no reason was given")


def follow_up(
    api: Api, client: "ShoalClient", outcome: "CommandOut", wait: bool, as_json: bool
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


def follow(api: Api, client: "ShoalClient", instance_id: int, as_json: bool) -> None:
    """Show a run until it has ended, and how. Ends with status 1 unless it has succeeded."""
    from shoal.client.cli.terminal.output import print_json, say

    try:
        ended = watch(api, instance_id)
    except KeyboardInterrupt:
        say(f"instance {instance_id} runs on; `shoal stop {instance_id}` ends it")
        raise
    if as_json:
        print_json(ended)
    else:
        conclude(client, ended)
    if ended["state"] != "SUCCEEDED":
        raise typer.Exit(1)


def conclude(client: "ShoalClient", instance: "InstanceDetail") -> None:
    """Print how a run ended: its tasks, and the end of the log of what failed."""
    from rich.text import Text

    from shoal.client.cli.runs.view import head_text, progress_text, tasks_table
    from shoal.client.cli.terminal.appearance import harmless
    from shoal.client.cli.terminal.output import err, out
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


def patiently(read: Callable[[], T]) -> T:
    """Return what ``read`` returns, repeated while the API or its database is away.

    Raises what ``read`` raises, if that lasts or a repetition does not help.
    """
    began = time.monotonic()
    while True:
        try:
            return read()
        except (ApiUnreachable, ApiProblem) as error:
            lasting = isinstance(error, ApiProblem) and error.status not in TRANSIENT
            if lasting or time.monotonic() - began > PATIENCE_S:
                raise
            time.sleep(_PAUSE_S)


def watch(api: Api, instance_id: int) -> "InstanceDetail":
    """Show a run on standard error until it has ended; return it.

    Outlives a restart of the API. Raises ApiUnreachable if it does not come back.
    """
    from shoal.client.cli.terminal.output import err
    from shoal.client.rest.client import ShoalClient

    picture = _Live(_Progress(api, instance_id)) if err().is_terminal else _Lines()
    with ShoalClient.of(api) as client, picture, _News(api, instance_id) as news:
        look = partial(patiently, partial(client.get_instance, instance_id))
        instance = look()
        picture.show(instance)
        while instance["state"] not in FINISHED:
            if news.wait(_LOOK_WITHOUT_NEWS_S, picture.tick):
                looked = time.monotonic()
                instance = look()
                picture.show(instance)
                # A large run costs the API time: look at most a third of the time.
                took = time.monotonic() - looked
                news.rest(max(_LOOK_S, 2 * took if took < 1 else took), picture.tick)
            else:
                instance = look()
                picture.show(instance)
        return instance


class _News:
    """Says when something happened to the instance. The events are read by a thread."""

    def __init__(self, api: Api, instance_id: int) -> None:
        self._api, self._instance_id = api, instance_id
        self._happened: queue.SimpleQueue[None] = queue.SimpleQueue()

    def __enter__(self) -> "_News":
        threading.Thread(target=self._read, name="events", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """The thread is a daemon: it ends with the program, or with its connection."""

    def _read(self) -> None:
        from shoal.client.rest.client import ShoalClient
        from shoal.core.errors import ShoalError

        try:
            with ShoalClient.of(self._api) as client:
                # From the beginning: what happened between the first look and this connection
                # must be news as well.
                events = client.events(
                    instance_id=self._instance_id, after=0, patience_s=PATIENCE_S
                )
                for _ in events:
                    self._happened.put(None)
        except ShoalError:
            return  # looking now and then goes on; it will find out why

    def wait(self, timeout_s: float, tick: Callable[[], None]) -> bool:
        """Wait for news; say whether there were some. Takes all that have come."""
        deadline = time.monotonic() + timeout_s
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                self._happened.get(timeout=min(left_s, _FRAME_S))
            except queue.Empty:
                tick()
                continue
            while not self._happened.empty():
                self._happened.get()
            return True
        return False

    @staticmethod
    def rest(pause_s: float, tick: Callable[[], None]) -> None:
        """Let a moment pass; more news may gather."""
        time.sleep(pause_s)
        tick()


class _Progress:
    """Reads how far the running tasks are, in a thread: a slow answer holds no picture up."""

    def __init__(self, api: Api, instance_id: int) -> None:
        self._api, self._instance_id = api, instance_id
        self._over = threading.Event()
        self.newest: Sequence[ProgressOut] = ()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="progress", daemon=True).start()

    def stop(self) -> None:
        """Read no more."""
        self._over.set()

    def _read(self) -> None:
        from shoal.client.rest.client import ShoalClient
        from shoal.core.errors import ShoalError

        while not self._over.wait(_PROGRESS_EVERY_S):
            try:
                with ShoalClient.of(self._api) as client:
                    while not self._over.wait(_PROGRESS_EVERY_S):
                        self.newest = client.get_progress(self._instance_id)
            except ShoalError:
                self.newest = ()  # the next connection may be better


class _Lines:
    """A line for every change of state."""

    def __init__(self) -> None:
        self._seen: dict[Any, str] = {}

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to undo."""

    def tick(self) -> None:
        """Nothing moves."""

    def show(self, instance: "InstanceDetail") -> None:
        """Print what is different from last time."""
        from shoal.client.cli.terminal.appearance import lasted, stamp
        from shoal.client.cli.terminal.output import say

        now = datetime.now(UTC)
        at = stamp(now)
        if instance["state"] not in FINISHED:
            self._show_instance(instance, at)
        for task in instance["tasks"]:
            state = task["state"]
            known = self._seen.get(task["id"], "WAITING")
            self._seen[task["id"]] = state
            if state == known:
                continue
            words = [at, f"{state:<12}", task["task"]]
            if task["attempt"] > 1:
                words.append(f"(attempt {task['attempt']})")
            if task["finished_at"] and task["started_at"]:
                words.append(f"after {lasted(task['started_at'], task['finished_at'], now)}")
            if task["reason"]:
                words.append(f"– {task['reason']}")
            say(" ".join(words))
        if instance["state"] in FINISHED:
            self._show_instance(instance, at)

    def _show_instance(self, instance: "InstanceDetail", at: str) -> None:
        from shoal.client.cli.terminal.output import say

        state = instance["state"]
        if self._seen.get("instance") != state:
            self._seen["instance"] = state
            say(f"{at} {state:<12} {instance['workflow']} (instance {instance['id']})")


class _Live:
    """A picture of the whole run that is drawn anew in place."""

    def __init__(self, progress: _Progress) -> None:
        self._progress = progress
        self._instance: InstanceDetail | None = None
        self._live: Live | None = None

    def __enter__(self) -> "_Live":
        self._progress.start()
        from rich.live import Live

        from shoal.client.cli.terminal.output import err

        self._live = Live(
            console=err(), auto_refresh=False, transient=True, vertical_overflow="crop"
        )
        self._live.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        assert self._live is not None
        self._progress.stop()
        self._live.__exit__(*details)

    def show(self, instance: "InstanceDetail") -> None:
        """Draw a new state."""
        self._instance = instance
        self.tick()

    def tick(self) -> None:
        """Draw again: time has passed."""
        if self._instance is not None and self._live is not None:
            self._live.update(self._picture(self._instance), refresh=True)

    def _picture(self, instance: "InstanceDetail") -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        from shoal.client.cli.runs.view import head_text, progress_text, tasks_table
        from shoal.client.cli.terminal.output import err

        now = datetime.now(UTC)
        console = err()
        rows = max(3, console.height - 6)
        parts: list[RenderableType] = [
            head_text(instance, now),
            tasks_table(instance, now, console.width, rows, self._progress.newest),
        ]
        left = len(instance["tasks"]) - rows
        if left > 0:
            parts.append(Text(f"… {left:,} more tasks", "dim"))
        parts.append(progress_text(instance))
        if instance["state"] == "PAUSED":
            parts.append(Text(f"paused; `shoal resume {instance['id']}` continues it", "yellow"))
        return Group(*parts)
