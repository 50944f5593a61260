"""Deadlines for calls of drivers that have none of their own."""

import threading
from collections.abc import Callable


def within(limit_s: float, call: Callable[[], object]) -> None:
    """Call it; raise TimeoutError if it takes longer, and what it raises."""
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
            failures.append(error)

    # A daemon: a call that does not come back keeps no process from its end.
    thread = threading.Thread(target=attempt, name="call with a deadline", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        raise TimeoutError(f"no answer within {limit_s:g} s")
    if failures:
        raise failures[0]
