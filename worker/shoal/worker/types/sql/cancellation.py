"""End what runs in the database when the attempt is to end."""

import threading
import time
from typing import Any, Self

from shoal.worker.types.child.work import Work
from shoal.worker.types.sql.session import Session

#: How long a statement may take to end after it was cancelled. Then its connection is ended:
#: a procedure may catch the cancellation. Half of what a worker waits before it kills.
PATIENCE_S = 2.5
_AGAIN_S = 0.25  # a cancellation that comes between two statements cancels none


class Canceller:
    """Cancels for as long as the block runs. Leaving it ends the cancelling thread's work."""

    def __init__(self, session: Session, work: Work[Any]) -> None:
        self._session, self._work = session, work
        self._left = threading.Event()

    def __enter__(self) -> Self:
        # In a thread of its own: if the attempt is to end already, the callback runs here.
        thread = threading.Thread(target=self._cancel, name="cancel statement", daemon=True)
        self._work.on_cancel(thread.start)
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()

    def _cancel(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._left.is_set() and time.monotonic() < deadline:
            self._attempt("cancel")
            self._left.wait(_AGAIN_S)
        if not self._left.is_set():
            self._work.log("shoal: the statement does not end; ending its connection")
            self._attempt("terminate")

    def _attempt(self, what: str) -> None:
        try:
            getattr(self._session, what)()
        except Exception as error:  # noqa: BLE001 - drivers raise anything
            self._work.log(f"shoal: could not {what}: {error}")
