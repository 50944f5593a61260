"""The end of a process that has no memory left, so that its supervisor starts a new one.

After a MemoryError a process may go on listening without answering: connections are refused inside
the event loop, loops that were to run forever have ended, and each further request fails. A new
process answers again within seconds.

``MemoryShortage.watching`` covers the places where Python hands over errors that no code expects:
the exception handler of the event loop, ``sys.unraisablehook`` (callbacks of C extensions such as
uvloop) and ``threading.excepthook``. Code that catches every error, as the outermost handler of
requests does, passes it on by ``report``. A MemoryError that is handled, such as that of an
expression or of a task that cannot start, ends nothing.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import structlog

log = structlog.get_logger()

EXIT_NO_MEMORY = os.EX_OSERR  # 71; no other end of a role has this status
_RESERVE_BYTES = 1 << 20  # released to write the last line; large enough to be mapped separately
_LINE = b"out of memory: this process ends and must be started again\n"


class MemoryShortage:
    """Ends this process at the first MemoryError that nothing has handled. One for a process."""

    def __init__(self) -> None:
        self._reserve = bytearray(_RESERVE_BYTES)

    @contextmanager
    def watching(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Watch ``loop``, threads and C extensions while the block lasts, and its own error."""
        unraisable, in_thread = sys.unraisablehook, threading.excepthook

        def in_loop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            self._end_if_due(context.get("exception"))
            loop.default_exception_handler(context)

        def in_extension(found: "sys.UnraisableHookArgs") -> None:
            self._end_if_due(found.exc_value, found.exc_type)
            unraisable(found)

        def in_another_thread(found: threading.ExceptHookArgs) -> None:
            self._end_if_due(found.exc_value, found.exc_type)
            in_thread(found)

        loop.set_exception_handler(in_loop)
        sys.unraisablehook, threading.excepthook = in_extension, in_another_thread
        try:
            yield
        except BaseException as error:
            self._end_if_due(error)
            raise
        finally:
            sys.unraisablehook, threading.excepthook = unraisable, in_thread
            loop.set_exception_handler(None)

    def _end_if_due(
        self, error: BaseException | None, kind: type[BaseException] | None = None
    ) -> None:
        # Python may have had no memory to make the error: then there is only its class.
        if is_out_of_memory(error) or (kind is not None and issubclass(kind, MemoryError)):
            self._end()

    def _end(self) -> NoReturn:
        self._reserve = bytearray()
        try:
            log.critical("out of memory: this process ends and must be started again")
        except BaseException:  # noqa: BLE001  # whatever fails here, the process must end
            with suppress(OSError):
                os.write(2, _LINE)
        # Not ``sys.exit``: an orderly end needs memory, and may wait for what no longer turns.
        os._exit(EXIT_NO_MEMORY)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error is a MemoryError, or a group that has one."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_out_of_memory, error.exceptions))
    return isinstance(error, MemoryError)


def report(error: BaseException) -> None:
    """Pass a MemoryError on to the running event loop's exception handler; ignore other errors.

    For code that catches every error. In the process of a role, a MemoryError does not return.
    """
    if is_out_of_memory(error):
        asyncio.get_running_loop().call_exception_handler(
            {"message": "out of memory", "exception": error}
        )
