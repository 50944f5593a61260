"""What an attempt has used and why it failed: as its worker reports it, so it is stored."""

import math
from typing import Any

import pytest

from shoal.core.runs.records import TaskInstance
from shoal.core.runs.states import WorkflowState
from shoal.core.runs.why.fingerprints import fingerprint
from shoal.proto import shoal_pb2 as pb
from tests.integration.master.conftest import Bench

LINE = "2026-11-26 10:00:00 ERROR: 3 rows refused"


async def reported(
    bench: Bench, kind: "pb.ReportKind.ValueType", **found: Any
) -> list[TaskInstance]:
    """Return the attempts of a run whose task ends so."""
    workflow = await bench.publish({"a": {"retries": 1}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        (claim,) = await worker.claim()
        await worker.fetch([claim])
        await worker.report(claim, kind, 3 if kind != pb.SUCCEEDED else 0, **found)
        await worker.queue.release([claim])
        if kind == pb.FAILED:
            assert await worker.work(1) == 0
        await bench.ended(instance.id)
    # Another master reads what the first one has stored, and goes on with it.
    async with bench.database.unit_of_work(read_only=True) as uow:
        return await uow.tasks.of_instance(instance.id, all_attempts=True)


def kept(attempt: TaskInstance) -> tuple[float | None, int | None, str | None, str | None]:
    return attempt.cpu_s, attempt.max_rss_kb, attempt.error_line, attempt.fingerprint


async def test_a_failed_attempt_keeps_what_it_used_and_its_error_line(bench: Bench) -> None:
    failed, again = await reported(bench, pb.FAILED, cpu_s=0.25, max_rss_kb=12_345, error_line=LINE)
    assert kept(failed) == (0.25, 12_345, LINE, fingerprint(LINE))
    assert kept(again) == (None, None, None, None)  # its worker does not say


async def test_a_success_keeps_what_it_used_alone(bench: Bench) -> None:
    (attempt,) = await reported(
        bench, pb.SUCCEEDED, cpu_s=0.0, max_rss_kb=1, error_line="of nothing"
    )
    assert kept(attempt) == (0.0, 1, None, None)


@pytest.mark.parametrize("cpu_s", [math.nan, math.inf, -1.0, 1e300])
async def test_what_is_no_measurement_is_not_stored(bench: Bench, cpu_s: float) -> None:
    failed, _ = await reported(
        bench, pb.FAILED, cpu_s=cpu_s, max_rss_kb=-5, error_line="x" * 5_000 + "\0"
    )
    assert kept(failed) == (None, None, "x" * 500, fingerprint("x" * 500))


async def test_a_run_that_is_taken_over_keeps_it(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}, "b": {"depends_on": ["a"], "run_when": "always"}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        (claim,) = await worker.claim()
        await worker.fetch([claim])
        await worker.report(claim, pb.FAILED, 3, cpu_s=0.5, max_rss_kb=7, error_line=LINE)
        await worker.queue.release([claim])
    async with bench.master():
        assert await worker.work(1) == 0
        assert await bench.ended(instance.id) is WorkflowState.FAILED
    first, _ = await bench.tasks(instance.id)
    assert kept(first) == (0.5, 7, LINE, fingerprint(LINE))
