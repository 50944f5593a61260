"""Out of descriptors or processes: nothing fails for it, nothing leaks, and it heals by itself."""

import asyncio
import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.runtime.settings import ClusterSettings
from shoal.worker.execution import runner
from shoal.worker.execution.context import prepare
from shoal.worker.processes.launcher import Launched, Launcher, NoRoomToStart
from shoal.worker.processes.program import ProcessOutcome
from shoal.worker.supervisor.shim.descriptors import RESERVE
from tests.integration.worker.agent.kit import InProcessWorker, children, the_worker, until
from tests.integration.worker.supervisor.attempt_site import Site
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

ROOM = 5  # tasks for which there are descriptors


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@contextmanager
def descriptors_of(pid: int, count: int) -> Iterator[None]:
    """Let that process have no more than ``count`` descriptors."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, 20_000))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def room_for(pid: int, tasks: int) -> int:
    """How many descriptors that launcher needs for so many more tasks, and its reserve."""
    return open_files(pid) + 2 * tasks + 2 + RESERVE


async def launched(launcher: Launcher, site: Site, *ids: str, masks: bool = False) -> list[object]:
    requests = [
        site.request(each, "/bin/sh", "-c", "read x <go", masks=["secret"] if masks else [])
        for each in ids
    ]
    return await asyncio.gather(
        *(launcher.launch(request) for request in requests), return_exceptions=True
    )


@pytest.mark.parametrize("masks", [False, True], ids=["plain", "with a filter"])
async def test_launcher_without_descriptors_says_so_and_leaks_none(
    launcher: Launcher, site: Site, *, masks: bool
) -> None:
    os.mkfifo(site.work / "go")
    idle = open_files(launcher.pid)
    counts = []
    with descriptors_of(launcher.pid, room_for(launcher.pid, ROOM)):
        for turn in range(4):
            ids = [f"{turn}-{n}" for n in range(3 * ROOM)]
            results = await launched(launcher, site, *ids, masks=masks)
            running = [each for each in results if isinstance(each, Launched)]
            starved = [each for each in results if isinstance(each, NoRoomToStart)]
            assert 1 <= len(running) <= ROOM
            assert len(running) + len(starved) == len(ids)
            assert "cannot start another process: Too many open files" in str(starved[0])
            counts.append(len(running))
            for each in running:
                await launcher.kill(each.id, "enough", 0.0)
            for each in running:
                await each.wait()
    assert counts[-1] >= counts[0] - 1, counts  # the room does not shrink (a record takes a shim)
    await eventually(lambda: open_files(launcher.pid) <= idle + 2 * ROOM)
    assert (await (await launcher.launch(site.request("ok", "true"))).wait()).exit_code == 0


async def test_shim_without_descriptors_hands_its_attempt_back(
    launcher: Launcher, site: Site
) -> None:
    first = await launcher.launch(site.request("first", "true"))
    assert (await first.wait()).outcome is ProcessOutcome.SUCCEEDED
    (shim,) = children(launcher.pid)
    with descriptors_of(shim.pid, 3), pytest.raises(NoRoomToStart, match="Too many open files"):
        await launcher.launch(site.request("second", "true"))
    again = await launcher.launch(site.request("second", "true"))
    assert (await again.wait()).outcome is ProcessOutcome.SUCCEEDED


async def test_launcher_keeps_enough_to_kill_and_to_store(launcher: Launcher, site: Site) -> None:
    escape = "( setsid env -i /bin/sh -c 'echo ready; exec sleep 1000' & ); echo ready; sleep 1000"
    limit = room_for(launcher.pid, 2)
    with descriptors_of(launcher.pid, limit):
        running = [await launcher.launch(site.marked(name, escape)) for name in "ab"]
        for name in "ab":
            await site.until_ready(name, 2)
        with pytest.raises(NoRoomToStart):
            await asyncio.wait_for(_fill(launcher, site), DEADLINE_S)
        assert limit - open_files(launcher.pid) >= RESERVE
        for each in running:
            await launcher.kill(each.id, "enough", 0.0)
            record = await each.wait()
            assert (record.outcome, record.durable) == (ProcessOutcome.KILLED, True)
    assert not site.survivors()


async def _fill(launcher: Launcher, site: Site) -> None:
    for number in range(100):
        await launcher.launch(site.request(f"more-{number}", "sleep", "1000"))


async def test_worker_without_descriptors_hands_tasks_back_and_recovers(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    ledger = tmp_path / "ledger"
    slots = 4 * ROOM
    async with InProcessWorker(cluster, slots=slots):
        await the_worker(master.session)
        pid = launcher_pid()
        with descriptors_of(pid, room_for(pid, ROOM)):
            script = f"echo x >>'{ledger}'; {until(go)}"
            numbers = await master.submit_many(slots, "SHELL", {"script": script})
            why = await paused(master)
            assert why == "cannot start another process: Too many open files"
            tasks = [master.table.tasks[number] for number in numbers]
            await eventually(lambda: sum(t.state == "RUNNING" for t in tasks) >= ROOM)
            async with asyncio.timeout(DEADLINE_S):  # the others may run elsewhere
                while await master.queue.depth("default") < slots - ROOM - 1:
                    await asyncio.sleep(0.02)
            assert {task.state for task in tasks} <= {"QUEUED", "CLAIMED", "RUNNING"}
        await eventually(lambda: all(task.state == "RUNNING" for task in tasks))
        assert await paused(master, wanted=False) is None
        go.touch()
        for number in numbers:
            assert (await master.table.ended(number)).state == "SUCCEEDED"
    assert ledger.read_text() == slots * "x\n"  # each has run once


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("can't start new thread"), OSError(errno.ENOMEM, "full")]
)
async def test_worker_without_memory_hands_a_task_back_and_runs_it_later(
    master: FakeMaster,
    cluster: ClusterSettings,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    refused = 0

    def without_memory(*given: Any) -> Any:
        nonlocal refused
        refused += 1
        if refused < 3:
            raise error
        return prepare(*given)

    monkeypatch.setattr(runner, "prepare", without_memory)
    async with InProcessWorker(cluster):
        await the_worker(master.session)
        [number] = await master.submit_many(1, "SHELL", {"script": "exit 0"})
        assert (await master.table.ended(number)).state == "SUCCEEDED"
    assert refused == 3


async def paused(master: FakeMaster, *, wanted: bool = True) -> str | None:
    """Why the worker takes no tasks, as soon as it has (a) reason."""
    async with asyncio.timeout(DEADLINE_S):
        while (why := (await the_worker(master.session)).data.get("paused") is not None) != wanted:
            await asyncio.sleep(0.05)
    found = (await the_worker(master.session)).data.get("paused") if why else None
    return None if found is None else str(found)


def launcher_pid() -> int:
    """The launcher below this process."""
    below = {child.pid for child in children(os.getpid())}
    while below:
        for pid in below:
            if Path(f"/proc/{pid}/comm").read_text() == "shoal-launcher\n":
                return pid
        below = {child.pid for pid in below for child in children(pid)}
    raise AssertionError("there is no launcher")
