"""Signing in with a link: for who can read the data folder, and has no name and no password.

A program that has the token of the data folder asks for a code, and opens a page of the UI with it
in the fragment of the address, which no browser sends and no server logs. The page exchanges it
for a session. A code works once, for a minute, and from this machine alone; an API process
remembers a digest of it, so it has to be redeemed where it was made.

The session belongs to no account, so there is no row for it: the cookie itself says until when it
is good, sealed with a key that only the token of the data folder gives. So it outlives a restart
of the API, and ends with the token.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

CODE_LIFE_S = 60.0
MOST_CODES = 20  # that wait to be redeemed; the oldest give way
MOST_ENDED = 10_000
_PREFIX = "local"
_PURPOSE = b"shoal: session of a browser, signed in by a one-time code"


class OneTimeCodes:
    """Codes that wait to be redeemed, in the memory of one API process."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._until_s: dict[bytes, float] = {}  # by digest, the oldest first

    def make(self) -> str:
        """Return a new code: 256 random bits."""
        code = secrets.token_urlsafe(32)
        while len(self._until_s) >= MOST_CODES:
            del self._until_s[next(iter(self._until_s))]
        self._until_s[_digest(code)] = self._now_s() + CODE_LIFE_S
        return code

    def redeem(self, code: str) -> bool:
        """Say whether the code is good. It is not from now on."""
        until_s = self._until_s.pop(_digest(code), None)
        return until_s is not None and self._now_s() < until_s


class SealedSessions:
    """Makes and checks the cookies of sessions that belong to no account."""

    def __init__(self, token: str, now: Callable[[], datetime]) -> None:
        self._key = hmac.digest(token.encode(), _PURPOSE, "sha256")
        self._now = now
        self._ended: dict[str, None] = {}  # texts of cookies, the oldest first

    def make(self, life: timedelta) -> str:
        """Return the text of a new cookie."""
        until = int((self._now() + life).timestamp())
        head = f"{_PREFIX}.{until}.{secrets.token_urlsafe(16)}"
        return f"{head}.{self._seal(head)}"

    def until(self, text: str) -> datetime | None:
        """Return when the session of a cookie ends; None: it is none of ours, or is over."""
        head, _, seal = text.rpartition(".")
        parts = head.split(".")
        is_ours = hmac.compare_digest(seal.encode(), self._seal(head).encode())
        if len(parts) != 3 or parts[0] != _PREFIX or not is_ours:
            return None
        until = datetime.fromtimestamp(int(parts[1]), UTC)
        return until if self._now() < until and text not in self._ended else None

    def end(self, text: str) -> None:
        """Sign out: this process refuses the cookie from now on."""
        if self.until(text) is None:
            return
        while len(self._ended) >= MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[text] = None

    def _seal(self, head: str) -> str:
        return hmac.new(self._key, head.encode(), "sha256").hexdigest()


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()
