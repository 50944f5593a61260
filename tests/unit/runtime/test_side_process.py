"""Side processes: limits of one piece of work, turns of owners, and no process left behind."""

import asyncio
import os
import time

import pytest

from shoal.core.errors import ShoalError
from shoal.runtime.side import process as side_process
from shoal.runtime.side.process import NoTurn, SideProcesses, WorkTooLarge


def identity() -> int:
    return os.getpid()


def turn_forever() -> None:
    while True:
        pass


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def fill_memory() -> int:
    return len(bytearray(2 << 30))


def leave() -> None:
    os._exit(7)


def fail(text: str) -> None:
    raise ShoalError(text)


async def test_work_is_done_by_one_process_after_the_other_in_the_same() -> None:
    async with SideProcesses() as processes:
        first, second = [await processes.run("a", identity) for _ in range(2)]
    assert first == second != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_errors_of_the_work_are_raised() -> None:
    async with SideProcesses() as processes:
        with pytest.raises(ShoalError, match="as it is"):
            await processes.run("a", fail, "as it is")


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (turn_forever, "1 s of processor time"),
        (fill_memory, "768 MB of memory"),
        (leave, "ended with code 7"),
    ],
)
async def test_work_beyond_the_limits_ends_and_the_next_is_done(work: object, says: str) -> None:
    async with SideProcesses() as processes:
        with pytest.raises(WorkTooLarge, match=says):
            await processes.run("a", work)  # type: ignore[arg-type]
        assert await processes.run("a", identity) > 0


async def test_the_caller_may_name_the_processor_time() -> None:
    async with SideProcesses() as processes:
        await processes.run("a", identity)
        with pytest.raises(WorkTooLarge, match=r"more than 0.2 s of processor time"):
            await processes.run("a", turn_forever, cpu_s=0.2)


async def test_work_that_only_waits_ends_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async with SideProcesses() as processes:
        await processes.run("a", identity)
        monkeypatch.setattr(side_process, "LONGEST_S", 0.2)
        with pytest.raises(WorkTooLarge, match=r"more than 0.2 s"):
            await processes.run("a", sleep, 30.0)


async def test_one_owner_has_one_process_and_leaves_the_others_to_others() -> None:
    async with SideProcesses(2) as processes:
        # Both are there before anything is timed: a start may take longer than all that follows.
        await asyncio.gather(processes.run("a", identity), processes.run("b", identity))
        greedy = [asyncio.create_task(processes.run("a", sleep, 0.3)) for _ in range(3)]
        other = asyncio.create_task(processes.run("b", sleep, 0.0))
        done, _ = await asyncio.wait([*greedy, other], return_when=asyncio.FIRST_COMPLETED)
        assert other in done or greedy[0] in done
        await other
        assert sum(one.done() for one in greedy) <= 1
        assert len({await one for one in greedy} - {await other}) <= 1


async def test_who_waits_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with SideProcesses(1) as processes:
        await processes.run("a", identity)
        first = asyncio.create_task(processes.run("a", sleep, 0.5))
        await asyncio.sleep(0)
        monkeypatch.setattr(side_process, "WAIT_S", 0.05)
        with pytest.raises(NoTurn):
            await processes.run("b", identity)
        monkeypatch.undo()
        assert await first > 0
        assert not processes._owners
