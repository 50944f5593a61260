"""Wrong passwords slow down the caller who gives them, and no other.

Counted in this process, by the user's name together with the address that asks, and by the address
alone. So a caller who guesses at a user's password does not lock that user out.

Many people may share an address, that of their router or proxy. Guesses at one name count for the
address only until that name has to wait itself. Guesses at many names make new names wait for
seconds, not for a minute, and never a name that has signed in from that address before. A new name
has no place in a queue: each guess that is admitted makes it wait again. To let in every name that
has waited would let in the guesses at as many names, which is what the address is slowed down for.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from shoal.api.web.errors import TooManyRequests

_MOST_KNOWN = 20_000  # of each kind; the longest untouched are forgotten
_FORGOTTEN_S = 900.0  # after the last wrong one
_LONGEST_S = 60.0  # that a name waits
_LONGEST_OF_ADDRESS_S = 4.0  # after a wrong password of others at its address


@dataclass
class _Count:
    wrong: int = 0
    last_s: float = 0.0


class FailedLogins:
    """Says when the next attempt may be made. One event loop."""

    FREE_OF_PAIR, FREE_OF_ADDRESS = 3, 30  # wrong ones that cost no time

    def __init__(self, clock_s: Callable[[], float] = monotonic) -> None:
        self._clock_s = clock_s
        self._pairs: OrderedDict[tuple[str, str], _Count] = OrderedDict()
        self._addresses: OrderedDict[str, _Count] = OrderedDict()
        self._signed_in: OrderedDict[tuple[str, str], None] = OrderedDict()  # once, from there

    def begin(self, name: str, address: str) -> None:
        """Return if an attempt may be made now. Raises TooManyRequests.

        It counts as a wrong one until it has succeeded: else many at once would count as none.
        """
        pair, host = self._pairs.get((name, address)), self._addresses.get(address)
        wait_s = self._wait_s(pair, self.FREE_OF_PAIR, _LONGEST_S)
        if (name, address) not in self._signed_in:
            of_address_s = self._wait_s(host, self.FREE_OF_ADDRESS, _LONGEST_OF_ADDRESS_S)
            wait_s = max(wait_s, of_address_s)
        if wait_s > 0:
            raise TooManyRequests(
                f"too many wrong passwords from here; try again in {wait_s:.0f} s", wait_s
            )

        self._count(self._pairs, (name, address))
        if self._pairs[name, address].wrong <= self.FREE_OF_PAIR:
            self._count(self._addresses, address)

    def succeeded(self, name: str, address: str) -> None:
        """The right password was given."""
        self._pairs.pop((name, address), None)
        self._signed_in.pop((name, address), None)
        self._signed_in[name, address] = None
        if len(self._signed_in) > _MOST_KNOWN:
            self._signed_in.popitem(last=False)
        if (host := self._addresses.get(address)) is not None:
            host.wrong = max(0, host.wrong - 1)

    def _count(self, counts: "OrderedDict[Any, _Count]", key: object) -> None:
        now_s = self._clock_s()
        found = counts.pop(key, None) or _Count()
        if now_s - found.last_s > _FORGOTTEN_S:
            found = _Count()
        found.wrong, found.last_s = found.wrong + 1, now_s
        counts[key] = found
        if len(counts) > _MOST_KNOWN:
            counts.popitem(last=False)

    def _wait_s(self, count: _Count | None, free: int, longest_s: float) -> float:
        """Doubled with each wrong one, from a second on, up to ``longest_s``."""
        if count is None or count.wrong < free:
            return 0.0
        wait_s = min(longest_s, 2.0 ** min(count.wrong - free, 10))
        return count.last_s + wait_s - self._clock_s()
