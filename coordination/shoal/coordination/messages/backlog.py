"""Which message of a partition to deliver next, and which were delivered in vain. No IO."""

import heapq
from collections import defaultdict, deque


class Backlog:
    """The messages of one partition that are known and not dealt with yet, by number.

    One message of a key is out at a time, so the messages of a key are delivered in the order
    of their numbers, and a message delivered again comes before its followers. A message that is
    taken is out without a deadline until its delivery is stored: the ack wait runs from ``grant``.
    ``now_s`` are seconds on a monotonic clock.
    """

    def __init__(self, ack_wait_s: float, max_deliveries: int) -> None:
        self._ack_wait_s, self._max_deliveries = ack_wait_s, max_deliveries
        self._keys: dict[int, str] = {}
        self._waiting: defaultdict[str, deque[int]] = defaultdict(deque)  # key -> its numbers
        self._ready: list[int] = []  # heap of numbers; may have some that are gone
        self._taken: set[int] = set()  # out, but their delivery is not stored yet
        self._deadlines: dict[int, float] = {}  # of those that are out and granted
        self.deliveries: dict[int, int] = {}  # number -> how often, if at all
        self.exhausted: set[int] = set()  # delivered in vain too often; they still stop their key

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def in_flight(self) -> int:
        """How many are granted and may still be acknowledged in time."""
        return len(self._deadlines)

    @property
    def next_deadline_s(self) -> float | None:
        """When the next one that is out comes back."""
        return min(self._deadlines.values(), default=None)

    @property
    def last_deadline_s(self) -> float | None:
        """When the last one that is out comes back."""
        return max(self._deadlines.values(), default=None)

    def add(self, number: int, key: str, deliveries: int = 0) -> None:
        """Add the next message; ``deliveries`` were made by owners before us."""
        self._keys[number] = key
        if deliveries:
            self.deliveries[number] = deliveries
        queue = self._waiting[key]
        queue.append(number)
        if len(queue) == 1:
            self._make_ready(number)

    def take(self) -> int | None:
        """Return the first message that may be delivered; then ``grant`` it or ``untake`` it."""
        while self._ready:
            number = heapq.heappop(self._ready)
            is_out = number in self._deadlines or number in self._taken
            if number in self._keys and not is_out and number not in self.exhausted:
                self.deliveries[number] = self.deliveries.get(number, 0) + 1
                self._taken.add(number)
                return number
        return None

    def grant(self, number: int, now_s: float) -> bool:
        """Start the ack wait of a message that was taken. False: it has been dealt with."""
        if number not in self._taken:
            return False
        self._taken.remove(number)
        self._deadlines[number] = now_s + self._ack_wait_s
        return True

    def untake(self, number: int) -> None:
        """Take a message back that could not be delivered; that does not count."""
        if number in self._taken:
            self._taken.remove(number)
            self.deliveries[number] -= 1
            if not self.deliveries[number]:
                del self.deliveries[number]
            heapq.heappush(self._ready, number)

    def expire(self, now_s: float) -> bool:
        """Take back what is out for too long. Returns whether there was any."""
        late = [number for number, deadline in self._deadlines.items() if deadline <= now_s]
        for number in late:
            del self._deadlines[number]
            self._make_ready(number)
        return bool(late)

    def remove(self, number: int) -> bool:
        """It is dealt with: acknowledged, or a dead letter. Returns False if it was before."""
        key = self._keys.pop(number, None)
        if key is None:
            return False
        self._taken.discard(number)
        self._deadlines.pop(number, None)
        self.deliveries.pop(number, None)
        self.exhausted.discard(number)
        queue = self._waiting[key]
        queue.remove(number)  # the first: only that one is ever out
        if queue:
            self._make_ready(queue[0])
        else:
            del self._waiting[key]
        return True

    def _make_ready(self, number: int) -> None:
        if self.deliveries.get(number, 0) >= self._max_deliveries:
            self.exhausted.add(number)
        else:
            heapq.heappush(self._ready, number)
