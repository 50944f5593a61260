"""How work ends: exit codes that a master understands, and a reason that people read.

The exit code is durable with the attempt's record. The reason is a file in the attempt's folder,
which the agent adds to the record; if the agent dies in that moment, only the reason is lost.
"""

import json
from contextlib import suppress
from pathlib import Path

from shoal.core.errors import LONGEST_REASON, ShoalError, shortened
from shoal.core.untrusted import read_json

#: The exit code after a failure that may be none another time.
FAILED = 1
#: The exit code after a failure that would be the same another time: EX_DATAERR of sysexits.h.
PERMANENT = 65
#: The exit code of a look that has not found what the task waits for: EX_TEMPFAIL of sysexits.h.
NOT_YET = 75
#: The exit code after a cancellation, as of a shell whose child SIGTERM has ended.
CANCELLED = 143

_REASON_FILE = "reason.json"
_AGAIN_FILE = "again.json"
_SETTLED_FILE = "settled"
_NOT_REPEATABLE_FILE = "not-repeatable"


class WorkFailed(ShoalError):
    """The work failed; the text says why, and what to do.

    Without a text the reason is the exit code, and what the work has written last into its log.
    ``permanent``: it would fail in the same way another time, so it is not tried again.
    ``exit_code``: that of a program that the work has run; 1 if it says none.
    """

    def __init__(self, text: str, *, permanent: bool = False, exit_code: int | None = None) -> None:
        self.permanent = permanent
        self.exit_code = PERMANENT if permanent else exit_code or FAILED
        super().__init__(text)


class NotYet(ShoalError):
    """What the task waits for is not there; the text says what there is instead.

    Another attempt looks in ``again_s`` seconds. Only types with a ``not_yet_exit_code`` raise it.
    """

    def __init__(self, text: str, *, again_s: float) -> None:
        self.again_s = again_s
        super().__init__(text)


def write_again_s(folder: Path, seconds: float) -> None:
    """Leave the time to the next look for the agent. Does nothing if the disk refuses."""
    with suppress(OSError):
        (folder / _AGAIN_FILE).write_text(json.dumps(seconds), encoding="utf-8")


def read_again_s(folder: Path) -> float | None:
    """Return the seconds to the next look that work has left; None if it has not. Blocks."""
    try:
        seconds = read_json((folder / _AGAIN_FILE).read_bytes()[:100])
    except (OSError, ValueError):
        return None
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return float(seconds) if is_number and abs(seconds) < 1e15 else None


def write_reason(folder: Path, reason: str) -> None:
    """Leave the reason of a failure for the agent. Does nothing if the disk refuses."""
    with suppress(OSError):
        text = json.dumps(shortened(reason, LONGEST_REASON))
        (folder / _REASON_FILE).write_text(text, encoding="utf-8")


def read_reason(folder: Path) -> str | None:
    """Return the reason that work has left in its folder; None if there is none. Blocks."""
    try:
        with (folder / _REASON_FILE).open(encoding="utf-8") as file:
            reason = read_json(file.read(8 * LONGEST_REASON))
    except (OSError, ValueError):
        return None
    return shortened(reason, LONGEST_REASON) if isinstance(reason, str) and reason else None


def mark_settled(folder: Path) -> None:
    """Note that nothing of the work goes on elsewhere. Raises OSError."""
    (folder / _SETTLED_FILE).touch()


def mark_not_repeatable(folder: Path, why: str | None) -> None:
    """Note that the work may have taken effect and is not to be done again; None: take it back.

    Raises OSError.
    """
    file = folder / _NOT_REPEATABLE_FILE
    if why is None:
        file.unlink(missing_ok=True)
    else:
        file.write_text(why, encoding="utf-8")


def read_not_repeatable(folder: Path) -> str | None:
    """Return why the work is not to be done again; None: it may be. Blocks."""
    try:
        return (folder / _NOT_REPEATABLE_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def is_settled(folder: Path) -> bool:
    """Return whether the work has noted that nothing of it goes on elsewhere. Blocks."""
    return (folder / _SETTLED_FILE).exists()
