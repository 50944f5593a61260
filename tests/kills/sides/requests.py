"""An HTTP server that knows which requests it is at work on, and for how long each takes."""

import asyncio
import itertools
from collections import Counter, defaultdict
from urllib.parse import parse_qs

from tests.kills.sides.side import Sight
from tests.support.servers.http_server import HttpServer, Received, answer


class RequestsSide:
    """A job is a request that is not answered, and whose client is there.

    Requests are for ``/work?case=MARKER&seconds=…``. Belongs to an event loop; ``look`` may be
    called from another thread.
    """

    name = "requests of the HTTP server"

    def __init__(self) -> None:
        self.server = HttpServer({"/work": self._work})
        self.received: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self._live: dict[str, frozenset[str]] = defaultdict(frozenset)
        self._numbers = itertools.count(1)
        self._before: dict[str, frozenset[str]] = {}

    def look(self) -> Sight:
        """See Side. What two looks see counts: of a client that is gone one may be too early."""
        now = dict(self._live)
        both = {marker: live & self._before.get(marker, live) for marker, live in now.items()}
        self._before = now
        return {
            marker: live if len(live) < 2 or len(both[marker]) > 1 else both[marker]
            for marker, live in now.items()
        }

    async def _work(self, received: Received, writer: asyncio.StreamWriter) -> None:
        asked = parse_qs(received.target.partition("?")[2])
        marker, job = asked["case"][0], frozenset({f"request {next(self._numbers)}"})
        self.received[marker] += 1
        self._live[marker] |= job
        try:
            await asyncio.sleep(float(asked["seconds"][0]))
            self.answered[marker] += 1
            writer.write(answer(200, "done"))
            await writer.drain()
        finally:
            self._live[marker] -= job
