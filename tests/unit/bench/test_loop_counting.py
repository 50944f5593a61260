"""The counters see every call and every turn of the loop, each for its role.

Calls that they miss could multiply without exceeding a budget.
"""

import asyncio
from collections import Counter

from bench.counts.loop import PYTHON_CALLS, WAKE_UPS, counting_turns, of_nobody, start_role


def called() -> None:
    """Is counted."""


async def work(turns: int, calls: int) -> None:
    for _ in range(turns):
        for _ in range(calls):
            called()
        await asyncio.sleep(0)


def counted(*roles: tuple[str, int, int]) -> Counter[str]:
    async def main() -> None:
        async with asyncio.TaskGroup():
            await asyncio.gather(*(start_role(role, work(*each)) for role, *each in roles))

    with counting_turns() as counts:
        asyncio.run(main())
        return counts.now()


def test_every_call_more_is_counted_for_its_role() -> None:
    before, after = counted(("a", 10, 5), ("b", 10, 5)), counted(("a", 10, 12), ("b", 10, 5))
    assert after[f"{PYTHON_CALLS}: a"] - before[f"{PYTHON_CALLS}: a"] == 70
    assert after[f"{PYTHON_CALLS}: b"] == before[f"{PYTHON_CALLS}: b"]
    assert after[PYTHON_CALLS] - before[PYTHON_CALLS] == 70


def test_every_turn_more_is_counted_for_its_role() -> None:
    before, after = counted(("a", 10, 5), ("b", 10, 5)), counted(("a", 20, 5), ("b", 10, 5))
    assert after[f"{WAKE_UPS}: a"] - before[f"{WAKE_UPS}: a"] == 10
    assert after[f"{WAKE_UPS}: b"] == before[f"{WAKE_UPS}: b"]


def test_work_of_who_measures_is_left_out() -> None:
    async def main(turns: int) -> None:
        async def measure() -> None:
            with of_nobody():
                await asyncio.create_task(work(turns, 5))

        await measure()

    found = []
    for turns in (10, 1_000):
        with counting_turns() as counts:
            asyncio.run(main(turns))
            found.append(counts.now()[PYTHON_CALLS])
    assert found[0] == found[1]
