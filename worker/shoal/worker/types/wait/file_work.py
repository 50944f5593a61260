"""One look of a WAIT_FILE task, in the process of its attempt."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from shoal.core.timing.durations import format_duration
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.wait import local, remote, web
from shoal.worker.types.wait.kind import WEB, WaitFileParams, has_placeholder, moment_of
from shoal.worker.types.wait.looks import not_yet
from shoal.worker.types.wait.roots import SETTING, Roots
from shoal.worker.types.wait.verdict import Found, judge, outputs

LOOK_S = 60.0  # a look that takes longer has failed: the file system does not answer


def run(work: Work[WaitFileParams]) -> None:
    """Look once. Raises NotYet, WorkFailed."""
    params = work.params
    if has_placeholder(params.path or params.url or "") or has_placeholder(params.newer_than or ""):
        text = "no parameter of the workflow fills a placeholder in path, url or newer_than"
        raise WorkFailed(text, permanent=True)
    newer_than = _newer_than(params.newer_than)
    try:
        found = _within(LOOK_S, lambda: _entries(work))
    except remote.StorageTrouble as trouble:
        not_yet(work, str(trouble))
    verdict = judge(found, params, time.time(), newer_than)
    if verdict.answer is not None:
        not_yet(work, verdict.answer, verdict.passes_in_s)
    work.output(**outputs(verdict.good))
    names = ", ".join(one.path for one in verdict.good[:5])
    more = f" and {len(verdict.good) - 5} more" if len(verdict.good) > 5 else ""
    work.log(f"found {names}{more}")


def _entries(work: Work[WaitFileParams]) -> list[Found]:
    roots = Roots.of(work.settings.get(SETTING, ""))
    if work.params.path is not None:
        return local.entries(work.params.path, roots)
    url = work.params.url or ""
    if url.startswith(WEB):
        return asyncio.run(web.entries(work, url))
    return remote.entries(url, roots)


def _newer_than(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = moment_of(text)
    except ValueError as error:
        raise WorkFailed(f"newer_than: {error}", permanent=True) from None
    zone = ZoneInfo(os.environ.get("SHOAL_TIMEZONE", "UTC"))
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment


def _within(seconds: float, look: Callable[[], list[Found]]) -> list[Found]:
    """Return what ``look`` finds. Raises WorkFailed if that takes too long, and what it raises.

    In a thread of its own: a file system that hangs keeps it for ever.
    """
    found: list[Found] = []
    errors: list[Exception] = []
    done = threading.Event()

    def work() -> None:
        try:
            found.extend(look())
        except Exception as error:  # noqa: BLE001 - it is raised in the main thread
            errors.append(error)
        done.set()

    threading.Thread(target=work, name="look", daemon=True).start()
    if not done.wait(seconds):
        text = f"a look takes longer than {format_duration(seconds)}: does the storage answer?"
        raise WorkFailed(f"{text} A narrower pattern is quicker")
    if errors:
        raise errors[0]
    return found
