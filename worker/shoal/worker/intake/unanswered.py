"""Release claims whose masters do not answer, so that they take no slots and others may run them.

The claim is released, and nothing else: what becomes of the task is the decision of its partition's
owner, which alone knows whether the request for it was carried out and only the answer was lost.

- *It was not.* The attempt is QUEUED, in no queue and in no claim: the sweeper queues it again.
- *It was.* The attempt is CLAIMED by us without a claim: the sweeper declares it LOST, and another
  attempt follows. None of its retries is used up.

Nothing of it has run here, and nothing will: an attempt that is over takes no payload, however late
the answer comes. Putting the entry back by ourselves would be wrong: the worker could claim it
again, and be granted what it holds already, while a sweeper that has not seen the new claim
declares it lost.
"""

import asyncio
import time
from collections.abc import Callable

import structlog

from shoal.runtime import failpoints
from shoal.worker.attempts import Attempt, Attempts
from shoal.worker.masters import Masters

log = structlog.get_logger()

CHECKS = 4  # in the time of the patience


async def give_up_unanswered(
    attempts: Attempts, masters: Masters, patience_s: float, refuse: Callable[[Attempt], None]
) -> None:
    """Call ``refuse`` with each attempt that no master has granted for ``patience_s``, for ever."""
    while True:
        await asyncio.sleep(patience_s / CHECKS)
        claimed_before = time.monotonic() - patience_s
        old = [a for a in attempts.live if not a.granted and a.claimed_at < claimed_before]
        if not old:
            continue
        some = [attempt.id for attempt in old[:20]]
        log.warning("claims released: no master answers", task_instances=some, count=len(old))
        masters.suspect(attempt.claim.entry.partition for attempt in old)
        failpoints.hit("fetch.before_give_up")
        for attempt in old:
            refuse(attempt)
