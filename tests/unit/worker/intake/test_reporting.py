"""Reports: which ones go, and together with which others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.worker.masters import Masters
from shoal.worker.results import reporter as reports
from shoal.worker.results.reporter import Reporter
from tests.support.waiting import DEADLINE_S, eventually

NEVER_S = 1e6


class OneMaster:
    """Owns every partition and commits everything, while ``open``. Keeps the calls."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[int, int]]] = []  # ids and kinds
        self.open = asyncio.Event()
        self.open.set()

    async def addresses(self, partitions: Iterable[int]) -> dict[int, str]:
        return dict.fromkeys(partitions, "somewhere:1")

    async def report(self, _address: str, request: pb.ReportRequest) -> pb.ReportResponse:
        self.calls.append([(r.attempt.task_instance_id, r.kind) for r in request.reports])
        await self.open.wait()
        committed = pb.ReportVerdict.COMMITTED
        numbers = [report.attempt.task_instance_id for report in request.reports]
        verdicts = [pb.ReportVerdict(task_instance_id=n, kind=committed) for n in numbers]
        return pb.ReportResponse(verdicts=verdicts)


@asynccontextmanager
async def reporter_to(
    master: OneMaster,
    in_no_hurry: Callable[[], bool] = lambda: False,
    start_held_s: float = reports.START_HELD_S,
) -> AsyncIterator[Reporter]:
    """A reporter at work."""
    reporter = Reporter(cast("Masters", master), in_no_hurry=in_no_hurry, start_held_s=start_held_s)
    running = asyncio.create_task(reporter.run())
    try:
        yield reporter
    finally:
        running.cancel()
        await asyncio.wait([running])


class Clock:
    """Stands still unless a test moves it."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


def report(number: int, kind: pb.ReportKind.ValueType) -> pb.Report:
    return pb.Report(attempt=pb.AttemptRef(task_instance_id=number), kind=kind)


async def test_of_a_short_task_the_end_alone_is_reported() -> None:
    master = OneMaster()
    async with reporter_to(master, start_held_s=NEVER_S) as reporter:
        reporter.add("w", report(1, pb.STARTED))
        await asyncio.sleep(0)  # the reporter has seen it and set its timer
        reporter.add("w", report(2, pb.SUCCEEDED))
        await eventually(lambda: len(reporter) == 1)
        reporter.add("w", report(1, pb.SUCCEEDED))
        async with asyncio.timeout(DEADLINE_S):
            await reporter.drained()
    assert master.calls == [[(2, pb.SUCCEEDED)], [(1, pb.SUCCEEDED)]]


async def test_the_start_of_a_longer_task_is_reported() -> None:
    master = OneMaster()
    async with reporter_to(master, start_held_s=0.01) as reporter, asyncio.timeout(DEADLINE_S):
        reporter.add("w", report(1, pb.STARTED))
        await reporter.drained()
    assert master.calls == [[(1, pb.STARTED)]]


async def test_ends_are_gathered_only_while_the_worker_has_enough_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    master, busy = OneMaster(), asyncio.Event()
    busy.set()
    async with reporter_to(master, busy.is_set) as reporter:
        clock = Clock()
        monkeypatch.setattr(reports, "time", clock)
        for number in (1, 2, 3):
            reporter.add("w", report(number, pb.SUCCEEDED))
            await asyncio.sleep(0)
            clock.now += reports.GATHER_S / 4
        assert master.calls == []
        clock.now += reports.GATHER_S
        await eventually(lambda: not len(reporter))
        reporter.add("w", report(4, pb.SUCCEEDED))
        reporter.add("w", report(5, pb.RETURNED))
        await eventually(lambda: len(reporter) == 1)
        busy.clear()
        reporter.add("w", report(6, pb.SUCCEEDED))
        await eventually(lambda: len(reporter) == 1)
    assert [[number for number, _ in call] for call in master.calls] == [[1, 2, 3], [5], [6]]


async def test_reports_that_wait_for_a_call_go_with_the_next_one_together() -> None:
    master = OneMaster()
    master.open.clear()
    async with reporter_to(master) as reporter:
        reporter.add("w", report(1, pb.SUCCEEDED))
        await eventually(lambda: master.calls)
        for number in (2, 3, 4):
            reporter.add("w", report(number, pb.SUCCEEDED))
            await asyncio.sleep(0)
        master.open.set()
        async with asyncio.timeout(DEADLINE_S):
            await reporter.drained()
    assert [[number for number, _ in call] for call in master.calls] == [[1], [2, 3, 4]]
