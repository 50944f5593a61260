"""Attempts from claim to verdict: a real ZooKeeper, a master's real service, real processes."""

import asyncio
from itertools import accumulate
from pathlib import Path

import pytest

from shoal.coordination import znodes
from shoal.coordination.cluster import layout
from shoal.runtime.settings import ClusterSettings
from shoal.worker.intake import claims
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    log_text,
    spool,
    the_worker,
    work_folders,
)
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


async def test_successful_task_is_reported_with_its_times(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    number = await master.submit("SHELL", {"script": "echo hello"})
    task = await master.table.ended(number)
    assert task.state == "SUCCEEDED"
    assert task.report is not None
    assert task.report.exit_code == 0
    assert task.report.reason == ""
    assert task.report.at > task.report.started_at > 0
    assert log_text(cluster.data, number) == "hello\n"


async def test_nothing_is_left_of_a_settled_attempt_but_its_log(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    number = await master.submit("SHELL", {"script": "echo junk >junk; mkdir -p a/b; exit 1"})
    await master.table.ended(number)
    await eventually(lambda: spool(cluster.data) == [])
    await eventually(lambda: work_folders(cluster.data) == [])
    async with asyncio.timeout(DEADLINE_S):
        while await master.queue.claimed([number]):
            await asyncio.sleep(0.01)
    assert log_text(cluster.data, number) == ""


async def test_failing_task_is_reported_with_code_and_reason(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    by_code = await master.submit("SHELL", {"script": "exit 7"})
    by_signal = await master.submit("SHELL", {"script": "kill -9 $$"})
    report = (await master.table.ended(by_code)).report
    assert report is not None
    assert (report.exit_code, report.reason) == (7, "exit code 7")
    task = await master.table.ended(by_signal)
    assert task.state == "FAILED"
    assert task.report is not None
    assert not task.report.HasField("exit_code")
    assert task.report.reason == "ended by signal 9"


async def test_start_is_reported_while_the_task_runs(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    number = await master.submit("SHELL", {"script": "sleep 100"})
    await master.table.wait(number, "RUNNING")
    worker.at_once.set()  # nothing to wait for


async def test_no_more_attempts_than_slots_run_at_once(
    master: FakeMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    # The tasks say so themselves: a slot is free when the process has ended, which may be a
    # moment before its master has heard of it.
    ledger = tmp_path / "ledger"
    script = f"echo start >> '{ledger}'; sleep 0.2; echo end >> '{ledger}'"
    for number in await master.submit_many(9, "SHELL", {"script": script}):
        await master.table.ended(number)
    running = list(accumulate(1 if x == "start" else -1 for x in ledger.read_text().split()))
    assert len(running) == 18
    assert 1 <= max(running) <= 4
    assert {task.state for task in master.table.tasks.values()} == {"SUCCEEDED"}


async def test_tasks_of_other_groups_are_left_alone(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    foreign = await master.submit("SHELL", {"script": "true"}, group="gpu")
    ours = await master.submit("SHELL", {"script": "true"})
    await master.table.ended(ours)
    assert master.table.tasks[foreign].state == "QUEUED"


async def test_waiting_worker_starts_a_task_as_soon_as_it_is_queued(
    master: FakeMaster, worker: InProcessWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From now on nothing makes it read the queue but the news that there is something in it.
    monkeypatch.setattr(claims, "LONGEST_WAIT_S", 1e6)
    first = await master.submit("SHELL", {"script": "true"})
    await master.table.ended(first)
    second = await master.submit("SHELL", {"script": "true"})
    await master.table.ended(second)


async def test_member_tells_where_it_is_and_how_busy(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    member = await the_worker(master.session)
    assert member.id.startswith("w-1-")
    assert {"address", "group", "slots", "running", "host", "pid", "started_at"} <= set(member.data)
    assert member.data["slots"] == 4
    await master.submit("SHELL", {"script": "sleep 100"})

    async def running() -> int:
        node = await master.session.get(znodes.member(layout.WORKERS, member.id))
        return 1 if b'"running": 1' in node.data else 0

    async with asyncio.timeout(DEADLINE_S):
        while not await running():
            await asyncio.sleep(0.05)
    worker.at_once.set()


async def test_bad_params_fail_the_attempt_with_the_field_in_reason_and_log(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    number = await master.submit("SHELL", {"script": "true", "interpreter": "zsh"})
    task = await master.table.ended(number)
    assert task.state == "FAILED"
    assert task.report is not None
    assert "interpreter" in task.report.reason
    assert task.report.reason in log_text(cluster.data, number)
    await eventually(lambda: spool(cluster.data) == [])


async def test_unknown_task_type_fails_the_attempt(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    number = await master.submit("COBOL", {})
    report = (await master.table.ended(number)).report
    assert report is not None
    assert "unknown task type 'COBOL'" in report.reason


async def test_program_that_cannot_start_fails_the_attempt_with_the_reason(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    number = await master.submit("PYTHON", {"script": "1", "interpreter": "no-such-python"})
    report = (await master.table.ended(number)).report
    assert report is not None
    assert "no such program in PATH" in report.reason
    assert "no such program in PATH" in log_text(cluster.data, number)


async def test_timeout_ends_the_whole_tree_and_fails_the_attempt(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    script = "trap '' TERM; setsid sleep 1000 & sleep 1000"
    number = await master.submit("SHELL", {"script": script}, timeout_s=0.5)
    task = await master.table.ended(number)
    assert task.state == "FAILED"
    assert task.report is not None
    assert "timed out after 0.5 s" in task.report.reason
