"""What a task gives to those behind it, read when it has ended well.

From the file that ``SHOAL_OUTPUT`` names, UTF-8, line by line:

- ``name=value``: everything behind the first ``=`` up to the end of the line, nothing unquoted;
- ``{"name": value, …}``: JSON, for values of several lines. Texts are taken as they are, other
  scalars as JSON writes them (null is the empty text), lists and objects stay JSON.

And, where the task asks for it, from lines of the log that begin with ``${setValue(name=value)}``;
the last ``)}`` of the line closes it. A later line counts before an earlier one, the file before
the log. What the file says wrongly fails the attempt. A log also shows what others have written,
so a line of it that cannot be used is a line like any other.

Imported by the launcher, so it imports little.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from contextlib import suppress

from shoal.worker.supervisor.shim.masks import Masker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

LONGEST_VALUE = 1 << 20  # bytes
MOST_BYTES = 4 << 20  # of all names and values
MOST = 1_000
LONGEST_LINE = 2 * LONGEST_VALUE  # bytes of a line that sets a value
LONGEST_FILE = 32 << 20  # bytes: what escapes make of the most that is allowed, and some
NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"  # as that of any parameter
MARK = b"${setValue("
_START = b"\n" + MARK
_SET = re.compile(rb"\$\{setValue\((" + NAME.encode() + rb")=(.*)\)\}", re.DOTALL)
_CHUNK = 1 << 20  # bytes of a log read at once


class BadOutput(Exception):
    """The outputs cannot be used; the text says where and why."""


def collect(
    output_path: str, log_path: str | None, refused: str, masks: Sequence[str] = ()
) -> dict[str, str]:
    """Return the outputs by name. ``refused``: a pattern of names that no output can have.

    ``log_path`` is None if lines of the log do not count. ``masks``, texts that must not be given
    on, are replaced. Raises BadOutput, OSError.
    """
    found: dict[str, str] = {}
    for line, name, value in _from_file(output_path):
        _check(found, name, value, f"output file, line {line}", refused)
    size = sum(_size(*each) for each in found.items())
    if size > MOST_BYTES:
        raise BadOutput(f"the outputs make {size:,} bytes, at most {MOST_BYTES:,} are allowed")
    if log_path is not None:
        _add_from_log(found, MOST_BYTES - size, log_path, refused)
    if masks:
        masker = Masker(masks)
        found = {name: masker.mask(value) for name, value in found.items()}
    return found


def _size(name: str, value: str) -> int:
    return len(name) + len(value.encode())


def _add_from_log(found: dict[str, str], room: int, path: str, refused: str) -> None:
    """Add what lines of the log set and the file does not, as far as it can be used."""
    of_file = frozenset(found)
    for name, value in _from_log(path):
        if name in of_file:
            continue
        try:
            _check({}, name, value, "", refused)
        except BadOutput:
            continue
        left = room + (_size(name, found[name]) if name in found else 0) - _size(name, value)
        if left < 0 or (name not in found and len(found) >= MOST):
            continue
        found[name], room = value, left


def _check(found: dict[str, str], name: str, value: str, where: str, refused: str) -> None:
    if re.fullmatch(refused, name, re.IGNORECASE):
        raise BadOutput(f"{where}: {name!r} is reserved: it would change the tasks that receive it")
    if "\0" in value:
        raise BadOutput(f"{where}: the value of {name} holds a NUL character")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise BadOutput(f"{where}: the value of {name} holds half of a character") from None
    if size > LONGEST_VALUE:
        raise BadOutput(
            f"{where}: the value of {name} has {size:,} bytes, at most {LONGEST_VALUE:,} are "
            "allowed; put large data into a file or a store, and its address into the output"
        )
    found[name] = value
    if len(found) > MOST:
        raise BadOutput(f"{where}: more than {MOST:,} outputs")


# -- file ------------------------------------------------------------------------------------------


def _from_file(path: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, name and value. Nothing if the task has made no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise BadOutput("output file: it is not a regular file")
        if status.st_size > LONGEST_FILE:
            raise BadOutput(f"output file: it is longer than {LONGEST_FILE:,} bytes")
        with open(fd, "rb", closefd=False) as file:
            content = file.read(LONGEST_FILE)
    finally:
        os.close(fd)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadOutput(f"output file, line {line}: it is not UTF-8") from None
    yield from _lines(text)


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    position, number = 0, 1
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        line = text[position:end].removesuffix("\r")
        if line.lstrip().startswith("{"):
            start = text.index("{", position)
            members, end = _json(text, start, number)
            yield from ((number, name, _text(value, number)) for name, value in members)
            number += text.count("\n", position, end)
        elif line.strip():
            name, equals, value = line.partition("=")
            if not equals or not re.fullmatch(NAME, name):
                raise BadOutput(
                    f"output file, line {number}: expected name=value or a JSON object, got "
                    f"{line[:60]!r}; a name has letters, digits and '_'"
                )
            yield number, name, value
        position, number = end + 1, number + 1


def _json(text: str, start: int, number: int) -> tuple[list[tuple[str, object]], int]:
    """Return the members of the object at ``start``, and where its last line ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise BadOutput(f"output file, line {error.lineno}: no JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise BadOutput(f"output file, line {number}: no JSON: {error}") from None
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    if text[end:line_end].strip():
        last = number + text.count("\n", start, end)
        raise BadOutput(f"output file, line {last}: text behind a JSON object")
    for name in value:
        if not re.fullmatch(NAME, name):
            raise BadOutput(
                f"output file, line {number}: {name[:60]!r} is not a name: letters, digits, '_'"
            )
    return list(value.items()), line_end


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _text(value: object, number: int) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        raise BadOutput(f"output file, line {number}: a number is too large")
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise BadOutput(f"output file, line {number}: JSON that is nested too deep") from None


# -- log -------------------------------------------------------------------------------------------


def _from_log(path: str) -> Iterator[tuple[str, str]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:  # the task removed its own log
        return
    with open(fd, "rb", buffering=0) as file:
        for line in _marked(file):
            # Text that only looks like it, as in a manual, is none.
            if found := _SET.match(line):
                with suppress(UnicodeDecodeError):
                    yield found[1].decode(), found[2].decode("utf-8")


def _marked(file: BinaryIO) -> Iterator[bytes]:
    """Yield each line that begins with the mark and is not too long. A log may have 256 MiB."""
    rest = b"\n"  # before the first line
    while chunk := file.read(_CHUNK):
        text = rest + chunk
        begin = text.find(_START)
        while begin >= 0 and (end := text.find(b"\n", begin + 1)) >= 0:
            if end - begin <= LONGEST_LINE:
                yield text[begin + 1 : end]
            begin = text.find(_START, end)
        rest = text[begin:] if begin >= 0 else text[1 - len(_START) :]
        if len(rest) > LONGEST_LINE:
            rest = b""  # what comes is in the middle of a line
    if rest.startswith(_START):
        yield rest[1:]
