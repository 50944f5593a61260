"""The process of an attempt: read the request, do the work, say how it ended."""

import asyncio
import importlib
import inspect
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shoal.core.task_types import TaskKind
from shoal.core.timing.durations import format_duration
from shoal.worker.types.child.outcome import (
    CANCELLED,
    FAILED,
    NOT_YET,
    PERMANENT,
    NotYet,
    WorkFailed,
    write_again_s,
    write_reason,
)
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.child.work import Cancelled, Work


def main() -> int:
    """Do the work that standard input asks for; return the exit code."""
    request = WorkRequest.from_json(sys.stdin.read())
    folder = Path.cwd()
    module, _, attribute = request.task_type.partition(":")
    task_type: type[TaskKind[Any]] = getattr(importlib.import_module(module), attribute)
    work: Work[Any] = Work(request, task_type.Params.model_validate(request.params), folder)
    work.cancel_at_sigterm()
    try:
        _do(work, request)
    except (Cancelled, asyncio.CancelledError):
        return CANCELLED
    except NotYet as not_yet:
        return _look_again(work, not_yet)
    except WorkFailed as failed:
        return _fail(work, str(failed), failed.exit_code)
    except ValidationError as error:
        return _fail(work, str(error), PERMANENT)
    except Exception as error:  # noqa: BLE001 - whatever the work raises fails its attempt
        if not work.is_cancelled:
            traceback.print_exc()
        return _fail(work, f"{type(error).__name__}: {error}", FAILED)
    return CANCELLED if work.is_cancelled else 0


def _do(work: Work[Any], request: WorkRequest) -> None:
    module, _, name = request.work.partition(":")
    function = getattr(importlib.import_module(module), "settle" if request.settle else name)
    doing = function(work)
    if inspect.iscoroutine(doing):
        asyncio.run(_until_cancelled(work, doing))


async def _until_cancelled(work: Work[Any], doing: Any) -> None:
    task = asyncio.ensure_future(doing)
    loop = asyncio.get_running_loop()
    work.on_cancel(lambda: loop.call_soon_threadsafe(task.cancel))
    await task


def _look_again(work: Work[Any], not_yet: NotYet) -> int:
    if work.is_cancelled:
        return CANCELLED
    when = format_duration(round(not_yet.again_s, 1))
    work.log(f"shoal: not yet: {not_yet}; the next look is in {when}")
    write_reason(work.folder, str(not_yet))
    write_again_s(work.folder, not_yet.again_s)
    return NOT_YET


def _fail(work: Work[Any], reason: str, code: int) -> int:
    if work.is_cancelled:  # what a driver says when its query is taken from it is expected
        return CANCELLED
    if reason:
        work.log(f"shoal: {reason}")
        write_reason(work.folder, reason)
    return code


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # At once: threads and connections that a driver has left must not keep the attempt from ending.
    os._exit(code)
