"""Task types that others bring, well behaved and not: each attempt ends with a result."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.runtime.settings import ClusterSettings
from shoal.worker.supervisor.watchdog import WATCHDOG
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    children,
    log_text,
    spool,
    the_worker,
)
from tests.support.fake_master import FakeMaster
from tests.support.packages import installed
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

PLUGIN = """
import asyncio
from shoal.core.task_types import Exit, TaskParams, TaskType

STARTS = "touch started; exec sleep 1000"

class Params(TaskParams):
    mode: str

class Odd(TaskType[Params]):
    Params = Params

    async def run(self, context, params):
        match params.mode:
            case "no process":
                return Exit(0)
            case "code":
                return Exit(9)
            case "raise":
                raise RuntimeError("the plugin broke")
            case "exit":
                raise SystemExit("the plugin left")
            case "desert":
                running = asyncio.create_task(context.run_process(["sh", "-c", STARTS]))
                while not (context.work_dir / "started").exists():
                    await asyncio.wait([running], timeout=0.02)
                raise RuntimeError("had enough")
            case "twice":
                await context.run_process(["true"])
                return await context.run_process(["false"])
            case "late":
                ended = await context.run_process(["sh", "-c", "exit 4"])
                raise RuntimeError("after the end")
            case "hang":
                await asyncio.Event().wait()
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path) -> Iterator[None]:
    """Install a package with a task type."""
    points = {"ODD": "odd_tasks:Odd", "BROKEN": "broken_tasks:Broken"}
    modules = {"odd_tasks": textwrap.dedent(PLUGIN), "broken_tasks": "raise SystemExit('no')"}
    with installed(tmp_path, "shoal.task_types", points, **modules):
        yield


@pytest.mark.parametrize(
    ("mode", "state", "reason"),
    [
        ("no process", "SUCCEEDED", ""),
        ("code", "FAILED", "exit code 9"),
        ("raise", "FAILED", "the plugin broke"),
        ("exit", "FAILED", "the plugin left"),
        ("desert", "FAILED", "its task type left the process alone: had enough"),
        ("twice", "SUCCEEDED", ""),
        ("late", "FAILED", "exit code 4"),
    ],
)
async def test_every_way_to_end_is_a_result(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    mode: str,
    state: str,
    reason: str,
) -> None:
    number = await master.submit("ODD", {"mode": mode})
    task = await master.table.ended(number)
    assert task.report is not None
    assert (task.state, task.report.reason) == (state, reason)
    if mode == "raise":
        assert log_text(cluster.data, number) == "shoal: the plugin broke\n"
    await eventually(lambda: spool(cluster.data) == [])


async def test_package_that_cannot_be_imported_fails_its_task_alone(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    number = await master.submit("BROKEN", {})
    task = await master.table.ended(number)
    assert task.report is not None
    assert task.state == "FAILED"
    assert "task type 'BROKEN' cannot be loaded from broken_tasks:Broken" in task.report.reason
    later = await master.submit("SHELL", {"script": "true"})
    assert (await master.table.ended(later)).state == "SUCCEEDED"


async def test_stopped_worker_interrupts_a_type_without_a_process(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster, drain_s=0.2):
        number = await master.submit("ODD", {"mode": "hang"})
        await master.table.wait(number, "CLAIMED")
    assert master.table.tasks[number].report is None
    assert not await master.queue.claimed([number])


async def test_dead_launcher_costs_the_attempts_but_not_the_worker(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    member = await the_worker(master.session)
    number = await master.submit("SHELL", {"script": "sleep 1000"})
    await master.table.wait(number, "RUNNING")
    below = children(int(member.data["pid"]))
    (watchdog,) = (each for each in below if each.args.startswith(WATCHDOG))
    (launcher,) = children(watchdog.pid)
    launcher.kill()
    await eventually(lambda: not children(watchdog.pid))
    later = await master.submit("SHELL", {"script": "true"})
    assert (await master.table.ended(later)).state == "SUCCEEDED"
    await master.unclaimed(number)
    assert master.table.tasks[number].state == "RUNNING"  # for the master to declare LOST
