"""The line of a log that says why an attempt failed, for people and for counting like failures.

Programs write the log, so nothing in it is trusted: what is read is bounded, every pattern takes a
time that grows with the text alone, and nothing that steers a terminal is left in the line.
"""

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import BinaryIO

import structlog

from shoal.core.errors import shortened
from shoal.core.runs.events import LONGEST_ERROR
from shoal.worker.logs.files import LogStore
from shoal.worker.processes.program import ExitRecord, ProcessOutcome
from shoal.worker.results.results import ERROR_LINE, WORKFLOW, is_not_yet, was_interrupted
from shoal.worker.supervisor.shim.masks import MASK, Masker

log = structlog.get_logger()

READ = 64 * 1024  # bytes, of the end
PATIENCE_S = 2.0  # a disk that does not answer must not keep the result

_OWN = "shoal: "
# Escape sequences (ECMA-48): CSI …, those that hold a text until BEL or ST, and the short ones.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[\]PX^_][^\x07\x1b]*+(?:\x07|\x1b\\)|[ -/]*+[0-~])"
)
_TRACEBACK = "Traceback (most recent call last):"
_IGNORED = "Exception ignored in"  # of a finaliser: the program goes on
_IN_GROUP = re.compile(r"^\s*\|\s?")  # before the lines of an exception group
_WRAPPED = "py4j.protocol.Py4JJavaError"  # says only that Java has failed
_FRAME = re.compile(r"\s+at \S")  # of Java, and of JavaScript
_BETWEEN_FRAMES = re.compile(r"\s*(?:\.\.\. \d+ |Suppressed:|$)")
_CAUSE = re.compile(r"^\s*Caused by: ")
_THREAD = re.compile(r'Exception in thread "[^"]*" ')
# What stands between the name of a user and the host in a URL, as drivers show theirs.
_PASSWORD = re.compile(r"(?<=://)([^\s/:@]*):[^\s/]+@")
_ERROR = re.compile(r"(?<!\w)(?:ERROR|FATAL)(?!\w)|Exception|[Ee]rror:")


async def with_error_line(
    record: ExitRecord, store: LogStore, masks: Sequence[str] = ()
) -> ExitRecord:
    """Return the record of an attempt that did not end well with the error line of its log.

    Without it if there is none, or the log cannot be read in ``PATIENCE_S``.
    """
    is_failure = record.outcome is not ProcessOutcome.SUCCEEDED and not is_not_yet(record)
    if not is_failure or was_interrupted(record) or ERROR_LINE in record.context:
        return record
    if not record.max_rss_kb:  # it had no process
        return record
    try:
        async with asyncio.timeout(PATIENCE_S):
            line = await asyncio.to_thread(_read, record, store, masks)
    except Exception as error:  # noqa: BLE001 - whatever a log does, the result has to leave
        log.info("no error line", task_instance=record.id, why=repr(error))
        return record
    return with_line(record, line) if line else record


def with_line(record: ExitRecord, line: str) -> ExitRecord:
    """Return the record with this error line."""
    return replace(record, context={**record.context, ERROR_LINE: line})


def _read(record: ExitRecord, store: LogStore, masks: Sequence[str]) -> str:
    context = record.context
    with store.open_read(
        context[WORKFLOW], context["workflow_instance_id"], context["task_instance_id"]
    ) as file:
        return plain(found(tail(file)), masks)


def tail(file: BinaryIO) -> str:
    """Return the end of a log as text, from the beginning of a line if it has several. Blocks."""
    begin = max(0, file.seek(0, os.SEEK_END) - READ)
    file.seek(begin)
    data = bytearray()
    while len(data) < READ and (more := file.read(READ - len(data))):
        data += more
    text = data.decode("utf-8", "replace")
    _, end, rest = text.partition("\n")
    return rest if begin and end else text


def found(text: str) -> str:
    """Return the line that says most about the failure in the end of a log; "": none does.

    In this order: the last line of the last traceback of Python; the last cause, else the
    exception, of the last stack trace of Java; the first line that names an error; the last one.
    Shoal's own lines count only if there are no others.
    """
    lines = [line for line in _ESCAPES.sub("", text).splitlines() if plain(line[:LONGEST_ERROR])]
    said = [line for line in lines if not line.startswith(_OWN)]
    if not said:
        return lines[-1].removeprefix(_OWN) if lines else ""
    raised, place = _raised(said)
    if raised and not raised.startswith(_WRAPPED):
        return raised
    thrown = _thrown(said[place:])
    if thrown or raised:
        return thrown or raised
    return next((line for line in said if _ERROR.search(line)), said[-1])


def _raised(lines: Sequence[str]) -> tuple[str, int]:
    """Return the line that ends the last traceback of Python, "" if none does, and its place."""
    last, place = "", 0
    begun = is_grouped = False
    for number, line in enumerate(lines):
        if line.endswith(_TRACEBACK):
            begun = not (number and lines[number - 1].startswith(_IGNORED))
            is_grouped = line.lstrip().startswith(("+", "|"))
            continue
        inner = _IN_GROUP.sub("", line, count=1) if is_grouped else line
        if begun and not inner[:1].isspace():
            last, place, begun = inner, number, False
    return last, place


def _thrown(lines: Sequence[str]) -> str:
    """Return what the last stack trace of Java is of: its last cause, else the exception."""
    last = ""
    for line, after in pairwise((*lines, "")):
        if _CAUSE.match(line):
            last = _CAUSE.sub("", line, count=1)
        elif _FRAME.match(after) and not (_FRAME.match(line) or _BETWEEN_FRAMES.match(line)):
            last = _THREAD.sub("", line, count=1)
    return last.removeprefix(": ")  # as Py4J writes it


def plain(line: str, masks: Sequence[str] = ()) -> str:
    """Return a line without escape sequences, control characters and secrets, not too long.

    Nor with the password of a URL, which may be no secret that we know: lines go on to where logs
    do not, such as alerts and reports.
    """
    line = _ESCAPES.sub("", line)
    line = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    line = _PASSWORD.sub(rf"\1:{MASK.decode()}@", Masker(masks).mask(line))
    return shortened(line, LONGEST_ERROR)
