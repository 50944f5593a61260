"""How often each caller may ask for something."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from shoal.api.web.errors import TooManyRequests

_MOST_KNOWN = 20_000  # callers; the longest untouched are forgotten


class Allowance:
    """A token bucket for each caller: ``per_minute`` requests, ``at_once`` of them without a pause.

    One event loop. A caller is any text; what a caller has used up costs the others nothing.
    """

    def __init__(
        self, what: str, per_minute: float, at_once: int, clock_s: Callable[[], float] = monotonic
    ) -> None:
        self._what, self._per_minute, self._at_once = what, per_minute, at_once
        self._clock_s = clock_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # and as of when

    def take(self, caller: str) -> None:
        """Count a request. Raises TooManyRequests, which says when the next one may come."""
        now_s, each_s = self._clock_s(), 60.0 / self._per_minute
        left, as_of_s = self._left.pop(caller, (float(self._at_once), now_s))
        left = min(float(self._at_once), left + (now_s - as_of_s) / each_s)
        self._left[caller] = (left - 1 if left >= 1 else left, now_s)
        if len(self._left) > _MOST_KNOWN:
            self._left.popitem(last=False)
        if left < 1:
            wait_s = (1 - left) * each_s
            raise TooManyRequests(
                f"too many {self._what} by {caller}: at most {self._per_minute:g} a minute; "
                f"try again in {max(1, round(wait_s))} s",
                wait_s,
            )
