"""What a failure means for another attempt.

A request may be repeated if that does no harm, or if it has certainly not been carried out. One
that is not idempotent (POST, PATCH) and was on its way when something failed may have been: then
no attempt follows, whatever the failure was.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from shoal.worker.types.child.outcome import WorkFailed

# The server says that it has not begun with the request: timeout, too early, too many requests.
NOT_BEGUN = frozenset({408, 425, 429})
# The server has done nothing, and says who is to be asked the same.
_ELSEWHERE = frozenset({307, 308})
_LONGEST_WAIT_S = 86_400.0
_NOT_AGAIN = (
    "the server may have carried the request out, so it is not sent again; "
    "idempotent: true says that it may be"
)
Note = Callable[[str | None], object]


def _not_noted(why: str | None) -> None:
    """Leave nothing behind."""


class Fate:
    """What may have become of the requests of this attempt, as far as that matters."""

    def __init__(self, *, is_idempotent: bool, note: Note = _not_noted) -> None:
        """``note`` outlives this process: it gets why no request may follow, None: one may."""
        self._is_idempotent, self._note = is_idempotent, note
        self._may_be_done = False

    def sent(self) -> None:
        """A request is leaving: the server may carry it out."""
        if not self._may_be_done and not self._is_idempotent:
            self._note(_NOT_AGAIN)
        self._may_be_done = True

    def answered(self, status: int) -> None:
        """The server has answered a request that carried the task's own method."""
        if status in NOT_BEGUN or status in _ELSEWHERE:
            self._may_be_done = False
            self._note(None)

    def failure(self, text: str, *, may_pass: bool) -> WorkFailed:
        """Return the failure of the attempt. ``may_pass``: it may be gone another time."""
        if may_pass and self._may_be_done and not self._is_idempotent:
            return WorkFailed(f"{text}. {_NOT_AGAIN[0].upper()}{_NOT_AGAIN[1:]}", permanent=True)
        return WorkFailed(text, permanent=not may_pass)


def may_pass(status: int) -> bool:
    """Return whether an answer of this status, which is not good, may be another one later."""
    return status < 300 or status >= 500 or status in NOT_BEGUN


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that the server asks to wait; None if it does not, or not clearly."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return min(float(text), _LONGEST_WAIT_S)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max(0.0, (until - (now or datetime.now(UTC))).total_seconds()), _LONGEST_WAIT_S)
