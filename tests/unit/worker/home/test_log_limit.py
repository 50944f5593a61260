"""Logs are checked the more often the faster they grow, and not at all while none does."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.coordination import QueueEntry, TaskClaim
from shoal.worker.attempts.held import HeldAttempt
from shoal.worker.logs.limit import CHECK_EVERY_S, MIB, SHORTEST_CHECK_S, LogLimit, next_check_s
from tests.support.waiting import eventually

LIMIT = 1000


def test_quiet_logs_are_looked_at_now_and_then() -> None:
    assert next_check_s([], 1.0, LIMIT) == CHECK_EVERY_S
    assert next_check_s([(500, 0), (LIMIT, 0)], 1.0, LIMIT) == CHECK_EVERY_S


def test_log_that_grows_is_looked_at_before_it_reaches_the_limit() -> None:
    assert next_check_s([(200, 100), (0, 0)], 0.01, LIMIT) == 0.04  # 0.08 s are left to it


def test_log_at_its_limit_that_grows_on_is_cut_at_once() -> None:
    assert next_check_s([(LIMIT, 1), (0, 0)], 1.0, LIMIT) == SHORTEST_CHECK_S


def test_log_that_was_cut_and_has_grown_less_since_counts_from_the_limit() -> None:
    # It had 5000 bytes when it was cut, and has 1100 now.
    assert next_check_s([(1100, 1100 - LIMIT)], 0.02, LIMIT) == SHORTEST_CHECK_S


def test_thousands_of_logs_are_looked_at_less_often() -> None:
    assert next_check_s([(0, 0)] * 5000, 1.0, LIMIT) == 0.5


async def test_logs_are_checked_only_while_one_grows(tmp_path: Path) -> None:
    checks = 0

    class Counted(LogLimit):
        def _cut_all(self, growing: Mapping[Any, Any]) -> None:
            nonlocal checks
            checks += 1
            super()._cut_all(growing)

    limit, log = Counted(1), tmp_path / "log"
    watching = asyncio.create_task(limit.watch())
    await asyncio.sleep(2 * CHECK_EVERY_S)
    assert not checks
    attempt = HeldAttempt(
        TaskClaim(QueueEntry("default", 2, 7, 2, 1, 0), "w", epoch=1, generation=1)
    )
    log.write_bytes(b"x" * (MIB + 5))
    limit.begin(attempt, log)
    await eventually(lambda: log.stat().st_size == MIB)
    await limit.finish(attempt, MIB)
    assert b"at least 5 further bytes were dropped" in log.read_bytes()[MIB:]
    before = checks
    await asyncio.sleep(2 * CHECK_EVERY_S)
    assert checks <= before + 1  # the one that was due
    watching.cancel()
