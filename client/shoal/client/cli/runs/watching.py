"""Follow a run until it has ended: live on a terminal, line by line elsewhere."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from shoal.client.cli.terminal.patience import PATIENCE_S, patiently
from shoal.client.find import Api
from shoal.core.runs.states import FINISHED_WORKFLOW

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from shoal.client.rest.operations.generated.types import InstanceDetail, ProgressOut

FINISHED = frozenset(state.value for state in FINISHED_WORKFLOW)
_FRAME_S = 0.25  # between two pictures: durations tick
_LOOK_S = 0.1  # at least, between two reads of a run that changes
_LOOK_WITHOUT_NEWS_S = 3.0  # events may be lost with the API; then this finds what happened
_PROGRESS_EVERY_S = 1.0


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
