"""What work may use, and how it is cancelled."""

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from shoal.core.data_sources import DataSource
from shoal.core.task_types import PROGRESS_FILE, TaskParams
from shoal.worker.types.child.outcome import (
    CANCELLED,
    WorkFailed,
    mark_not_repeatable,
    mark_settled,
)
from shoal.worker.types.child.request import WorkRequest

P = TypeVar("P", bound=TaskParams)
_PROGRESS_EVERY_S = 0.5


class Cancelled(Exception):
    """The attempt is to end: it is being killed, or its timeout is over."""


class Work(Generic[P]):
    """One attempt's work, seen from the process that does it. Its methods may be called from any
    thread. Its current folder, ``folder``, is private to the attempt.
    """

    def __init__(self, request: WorkRequest, params: P, folder: Path) -> None:
        self.params = params
        self.parameters: Mapping[str, str] = request.parameters
        self.secrets: Mapping[str, str] = request.secrets
        self.settings: Mapping[str, str] = request.settings  # of the worker, see TaskContext
        self.timeout_s = request.timeout_s  # the worker's to keep
        self.task_instance_id, self.attempt = request.task_instance_id, request.attempt
        self.tag, self.folder = request.tag, folder
        self.looks, self.waiting_since = request.looks, request.waiting_since  # see TaskContext
        self._data_sources = request.data_sources
        self._outputs = os.environ.get("SHOAL_OUTPUT", os.devnull)
        self._lock = threading.Lock()
        self._progress_due = 0.0
        self._is_cancelled = False
        self._at_line_start = True
        self._on_cancel: list[Callable[[], object]] = []

    def data_source(self, name: str) -> DataSource:
        """Return a data source that the params name. Raises WorkFailed."""
        if name not in self._data_sources:
            text = f"the payload has no data source {name!r}: is its field marked SourceName?"
            raise WorkFailed(text, permanent=True)
        return self._data_sources[name]

    # -- what people see --------------------------------------------------------------------

    def log(self, text: str) -> None:
        """Write lines into the attempt's log."""
        self.log_bytes(f"{text}\n".encode(errors="replace"), is_own=True)

    def log_bytes(self, chunk: bytes, *, is_own: bool = False) -> None:
        """Write what a program says that runs elsewhere, as it is; ``is_own``: whole lines."""
        with self._lock, suppress(BrokenPipeError):
            out = sys.stdout.buffer
            if is_own and not self._at_line_start:
                out.write(b"\n")
            out.write(chunk)
            out.flush()
            self._at_line_start = chunk.endswith(b"\n")

    def progress(self, done: float, total: float | None, unit: str, label: str = "") -> None:
        """Say how far the work is: ``done`` of ``total`` (None: unknown) in ``unit``.

        Cheap enough for each row: only every half second is kept.
        """
        now = time.monotonic()
        with self._lock:
            if now < self._progress_due and done != total:
                return
            self._progress_due = now + _PROGRESS_EVERY_S
            fields = {"done": done, "total": total, "unit": unit, "label": label}
            new = self.folder / f"{PROGRESS_FILE}.new"
            with suppress(OSError):  # a full disk stops no work
                new.write_text(json.dumps({**fields, "at": time.time()}), encoding="utf-8")
                new.rename(self.folder / PROGRESS_FILE)

    def output(self, /, **values: Any) -> None:
        """Set outputs of the attempt. A later one of the same name counts.

        Texts are taken as they are; numbers, lists and objects as JSON writes them.
        """
        line = json.dumps(values, ensure_ascii=False, default=str)
        with self._lock, Path(self._outputs).open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def settled(self) -> None:
        """Say that nothing of this work goes on elsewhere, so no search is needed."""
        mark_settled(self.folder)

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Be where nothing is begun yet: if that fails in a first attempt, nothing goes on."""
        try:
            yield
        except WorkFailed:
            if self.attempt == 1:
                self.settled()
            raise

    def not_repeatable(self, why: str | None) -> None:
        """Say that from now on the work may have taken effect, and must not do so twice.

        If something ends this process after that, no attempt follows by itself, and ``why`` is
        added to the reason; None takes that back. A failure that the work raises says for itself
        whether it is permanent. Raises OSError.
        """
        mark_not_repeatable(self.folder, why)

    # -- cancellation -----------------------------------------------------------------------

    @property
    def is_cancelled(self) -> bool:
        """Whether the attempt is to end. Nothing new may be begun then."""
        return self._is_cancelled

    def require_wanted(self) -> None:
        """Raise Cancelled if the attempt is to end."""
        if self._is_cancelled:
            raise Cancelled

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Have ``callback`` called, in a thread of its own, when the attempt is to end.

        It is called at once if that is so already. It ends what runs elsewhere, so that the main
        thread gets on.
        """
        with self._lock:
            self._on_cancel.append(callback)
            is_late = self._is_cancelled
        if is_late:
            callback()

    def cancel(self) -> None:
        """Have the work end. The newest callback comes first; one that fails stops no other."""
        with self._lock:
            self._is_cancelled = True
            callbacks = list(reversed(self._on_cancel))
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - drivers raise anything
                self.log(f"shoal: could not cancel: {error}")

    def cancel_at_sigterm(self) -> None:
        """Call ``cancel`` when SIGTERM comes, whatever the main thread is waiting for.

        A second SIGTERM ends the process at once. Call it once, in the main thread.
        """
        # Python runs handlers between two steps of the main thread, which may be deep in a driver.
        # The descriptor is written to at once. Blocking the signal would be inherited by programs
        # that the work starts.
        signals, wakeup = socket.socketpair()
        wakeup.setblocking(False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(wakeup.detach(), warn_on_full_buffer=False)
        wait = partial(self._wait_for_sigterm, signals)
        threading.Thread(target=wait, name="signals", daemon=True).start()

    def _wait_for_sigterm(self, signals: socket.socket) -> None:
        times = 0
        while received := signals.recv(1):
            times += received[0] == signal.SIGTERM
            if times > 1:
                os._exit(CANCELLED)
            if received[0] != signal.SIGTERM:
                continue
            self.log("shoal: cancelling")
            threading.Thread(target=self.cancel, name="cancelling", daemon=True).start()
