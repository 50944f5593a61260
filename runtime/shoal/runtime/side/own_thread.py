"""A blocking call in a thread of its own, for calls that other code must not wait for.

The event loop's executor has a few threads for everything. Calls that hang (a name server that is
silent, a chat that never answers, a plug-in) would take them one by one, and then vaults, files and
the calls of other projects wait. A daemon thread for each such call holds up nothing else, and not
the end of the process either.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def call_in_own_thread(
    call: Callable[[], T], name: str, ended: Callable[[], None] = lambda: None
) -> T:
    """Return what ``call`` returns, or raise what it raises.

    ``ended`` is called on the loop when the call has ended, however long that takes, also if the
    caller was cancelled meanwhile. ``name``: of the thread. Raises RuntimeError if there can be no
    more threads.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        ended()
        if outcome.cancelled():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(value)  # type: ignore[arg-type]

    def work() -> None:
        value: T | None = None
        failure: Exception | None = None
        try:
            value = call()
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            failure = error
        except BaseException as error:  # noqa: BLE001 - of a plug-in; it ends no process of ours
            failure = RuntimeError(type(error).__name__)
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:  # the loop is closed: no caller waits
            return

    try:
        threading.Thread(target=work, name=name, daemon=True).start()
    except RuntimeError:  # there can be no more threads
        ended()
        raise
    return await outcome
