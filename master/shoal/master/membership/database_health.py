"""Whether this master's database answers, as a breaker.

While there is work, its answers show it. When none has come for a moment the database is probed,
if need be over a new connection, so that neither a lost connection nor an exhausted pool is
mistaken for a lost database. The breaker opens when there has been
no answer for half of the session timeout, and closes when one comes quickly: a database that takes
seconds for each is good for finishing work, not for beginning again.

A database that answers and stores nothing (read-only, full) is the same for all masters, as a rule.
So it opens no breaker: each says in its registration why its writes are refused, for as long as
they are.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from shoal.core.errors import ShoalError
from shoal.master.engine.held_runs import Clock
from shoal.runtime.breaker import Breaker, BreakerState
from shoal.sql import Database

log = structlog.get_logger()

# In parts of the session timeout:
_FRESH = 0.2  # an answer that old is good enough
_DOUBTFUL = 0.1  # without an answer for so long, the other masters are informed
_GONE = 0.5  # without one for so long, the breaker opens
_INTERVAL = 0.05  # between two checks, unless the last answer is good enough for longer
_QUICK = 0.25  # an answer that closes it
_PROBE = 1.0  # longest wait for the answer to a question


@dataclass(frozen=True)
class DatabaseState:
    """What a master says of its database, to the other masters and to people."""

    answers: bool
    breaker: BreakerState = BreakerState.CLOSED
    since: datetime | None = None  # of no answer; None: it answers
    refuses: str | None = None  # why it stores nothing of this master; None: it does

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON."""
        since = self.since.isoformat() if self.since else None
        refuses = {"refuses": self.refuses} if self.refuses else {}
        return {"answers": self.answers, "breaker": self.breaker.value, "since": since, **refuses}


def says_it_answers(data: Mapping[str, Any]) -> bool:
    """Whether a master's data says that its database answers. An older version says nothing."""
    database = data.get("database")
    return isinstance(database, Mapping) and database.get("answers") is True


class DatabaseHealth:
    """Checks, and probes when there are no answers. Times are shares of ``session_timeout_s``."""

    def __init__(self, database: Database, session_timeout_s: float, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._timeout_s = session_timeout_s
        self._breaker = Breaker(retry_s=_FRESH * session_timeout_s)
        self._asked_s: float | None = None  # the first question without an answer; monotonic
        self._since: datetime | None = None  # the same, for people
        self._probe: asyncio.Task[None] | None = None
        self._write: asyncio.Task[None] | None = None
        self.closed_s = time.monotonic()  # when the breaker was last closed

    @property
    def state(self) -> DatabaseState:
        """What is known at this moment."""
        is_closed = self._breaker.is_closed
        answers = is_closed and self._silent_s() < _DOUBTFUL * self._timeout_s
        return DatabaseState(
            answers=answers,
            breaker=self._breaker.state,
            since=None if answers else self._since,
            refuses=self._database.write_refusal,
        )

    async def run(self) -> None:
        """Run for ever."""
        try:
            while True:
                await asyncio.sleep(self._pause_s())
                self._check()
        finally:
            under_way = [one for one in (self._probe, self._write) if one is not None]
            for one in under_way:
                one.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    def _silent_s(self) -> float:
        return 0.0 if self._asked_s is None else time.monotonic() - self._asked_s

    def _pause_s(self) -> float:
        """Return the seconds until the next check can find something."""
        interval_s = _INTERVAL * self._timeout_s
        if self._asked_s is not None or not self._breaker.is_closed:
            return interval_s
        stale_s = self._database.answered_s + _FRESH * self._timeout_s
        return max(interval_s, stale_s - time.monotonic())

    def _check(self) -> None:
        now_s = time.monotonic()
        if self._write is None and self._database.write_refusal is not None:
            self._write = asyncio.create_task(self._writing(), name="database write")
        if not self._breaker.is_closed:
            if self._probe is None and self._breaker.allows(now_s):
                self._ask()
            return
        if self._asked_s is not None and self._database.answered_s > self._asked_s:
            self._asked_s = self._since = None
        if self._silent_s() >= _GONE * self._timeout_s:
            self._breaker.failed(now_s)
            log.error("the database does not answer", since=self._since)
        elif self._probe is None and (
            self._asked_s is not None
            or now_s - self._database.answered_s > _FRESH * self._timeout_s
        ):
            if self._asked_s is None:
                self._asked_s, self._since = now_s, self._clock()
            self._ask()

    async def _writing(self) -> None:
        """Write again what was refused: only that shows that the database stores again."""
        try:
            await self._database.check_writes()
            log.info("the database stores again")
        except ShoalError as error:
            log.debug("the database refuses writes", error=str(error))
        finally:
            self._write = None

    def _ask(self) -> None:
        self._probe = asyncio.create_task(self._question(), name="database probe")

    async def _question(self) -> None:
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(_PROBE * self._timeout_s):
                await self._database.probe()
        except (ShoalError, TimeoutError) as error:
            log.debug("database probe failed", error=str(error))
            if not self._breaker.is_closed:
                self._breaker.failed(time.monotonic())
            return
        finally:
            self._probe = None
        took_s = time.monotonic() - began_s
        if self._breaker.is_closed:
            return  # the next check sees the answer
        if took_s > _QUICK * self._timeout_s:
            self._breaker.failed(time.monotonic())
            return
        log.info("the database answers again", silent_since=self._since)
        self._breaker.succeeded()
        self._asked_s = self._since = None
        self.closed_s = time.monotonic()
