"""Hints for misspelt names, and how many mistakes are reported: both bounded.

Comparing a name with thousands of others takes long, and ten mistakes of a
kind do not need a hint each: the first few help, the rest would only cost time.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

MOST_MISTAKES = 100
"""Mistakes that are reported at once, of one text or definition."""

MOST_HINTS = 10
MOST_COMPARED = 2_000  # names, by all hints of one check; some 20 µs each
_LONGEST = 100  # characters, as names have


class Hints:
    """The hints of one check, however many names it meets."""

    def __init__(self) -> None:
        self._hints_left, self._left = MOST_HINTS, MOST_COMPARED

    def of(self, name: str, known: Iterable[str]) -> str:
        """Return ``; did you mean 'x'?``, or nothing if there is no hint."""
        close = self.similar(name, known, 1)
        return f"; did you mean {close[0]!r}?" if close else ""

    def similar(self, name: str, known: Iterable[str], n: int) -> list[str]:
        """Return up to ``n`` similar names, the most similar first."""
        if self._hints_left <= 0 or self._left <= 0 or len(name) > _LONGEST:
            return []
        self._hints_left -= 1
        compared = list(islice(known, self._left))
        self._left -= len(compared)
        return get_close_matches(name, compared, n=n)
