"""Workers that prefetch: in order, never too much at once, and requeued."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from shoal.worker.attempts import held
from shoal.worker.attempts.held import PrefetchTimes
from shoal.worker.home import disk
from tests.integration.worker.agent.kit import InProcessWorker, cluster_settings, the_worker, until
from tests.support.fake_master import FakeMaster
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

SHORT = {"script": "true"}
AHEAD = held.MOST_OF_A_SLOT  # of a worker with one slot


# A worker that has finished a task once is taken for a quick one for ever.
ALWAYS_AHEAD = PrefetchTimes(short_s=1e6, window_s=1e6)
# And nothing is requeued because of the time.
PATIENT = replace(ALWAYS_AHEAD, patience_s=1e6)


async def fill_buffer(master: FakeMaster, script: str) -> list[int]:
    """Let a worker of one slot hurry, then meet long tasks; return one that runs, then others.

    The others are granted, and wait for the slot.
    """
    short = await master.submit_many(AHEAD, "SHELL", SHORT)
    for number in short:
        await master.table.ended(number)
    numbers = await master.submit_many(1 + AHEAD, "SHELL", {"script": script})
    for number in numbers:
        await master.table.wait(number, "CLAIMED", "RUNNING")
    await master.table.wait(numbers[0], "RUNNING")
    return numbers


def logs(cluster: ClusterSettings, numbers: list[int]) -> set[int]:
    """Those of ``numbers`` that have a log: they had a process."""
    found = cluster.data.glob("workers/*/*/logs/tests.wf/7/*.log")
    return {int(path.stem) for path in found} & set(numbers)


async def test_no_more_run_at_once_than_there_are_slots_and_in_the_order_of_the_queue(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    running, order = tmp_path / "running", tmp_path / "order"
    # Each slot is a folder that only one task can make: a third task at once finds none.
    script = f"echo $SHOAL_TASK >> '{order}'; mkdir '{running}' && sleep 0.01 && rmdir '{running}'"
    async with InProcessWorker(cluster, PATIENT, slots=1):
        numbers = await master.submit_many(6 * AHEAD, "SHELL", {"script": script})
        for number in numbers:
            assert (await master.table.ended(number)).state == "SUCCEEDED"
    assert order.read_text().split() == [f"task-{number}" for number in numbers]
    assert max(master.fetches) > 1
    assert pb.RETURNED not in {report.kind for report in master.reports}


async def test_setting_switches_it_off(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(cluster, ALWAYS_AHEAD, slots=1, prefetch=0):
        for number in await master.submit_many(AHEAD, "SHELL", SHORT):
            await master.table.ended(number)
        first, *others = await master.submit_many(4, "SHELL", {"script": until(go)})
        await master.table.wait(first, "RUNNING")
        assert await master.queue.claimed(others) == set()
        go.touch()
        for number in (first, *others):
            await master.table.ended(number)
    assert max(master.fetches) == 1


async def test_task_that_is_more_important_starts_before_those_that_wait_already(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go, order = tmp_path / "go", tmp_path / "order"
    script = f"echo $SHOAL_TASK >> '{order}'; {until(go)}"
    async with InProcessWorker(cluster, PATIENT, slots=1):
        short = await master.submit_many(AHEAD, "SHELL", SHORT)
        urgent = await master.submit("SHELL", {"script": script}, put=False)
        for number in short:
            await master.table.ended(number)
        numbers = await master.submit_many(AHEAD // 2, "SHELL", {"script": script})
        for number in numbers:
            await master.table.wait(number, "CLAIMED", "RUNNING")
        await master.table.wait(numbers[0], "RUNNING")
        await master.queue.put([master.table.tasks[urgent].entry])
        await master.table.wait(urgent, "CLAIMED")
        go.touch()
        for number in [urgent, *numbers]:
            await master.table.ended(number)
    assert order.read_text().split() == [f"task-{n}" for n in (numbers[0], urgent, *numbers[1:])]


async def test_tasks_that_wait_too_long_go_to_another_worker(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(cluster, ALWAYS_AHEAD, slots=1):
        numbers = await fill_buffer(master, until(go))
        async with InProcessWorker(cluster, name="other", slots=1 + AHEAD):
            for number in numbers:
                await master.table.wait(number, "RUNNING")
            assert len({master.table.tasks[number].worker for number in numbers}) == 2
            go.touch()
            for number in numbers:
                assert (await master.table.ended(number)).state == "SUCCEEDED"
                assert master.table.tasks[number].committed == 1


async def test_task_that_is_killed_while_it_waits_has_no_process(
    master: FakeMaster, cluster: ClusterSettings, channels: Channels, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(cluster, PATIENT, slots=1):
        first, *others = await fill_buffer(master, until(go))
        address = (await the_worker(master.session)).data["address"]
        request = pb.KillRequest(task_instance_ids=others[:2], reason="enough")
        answer = await channels.worker(address).Kill(request)
        assert list(answer.known) == others[:2]
        for number in others[:2]:
            assert (await master.table.ended(number)).state == "KILLED"
            await master.unclaimed(number)
        go.touch()
        for number in (first, *others[2:]):
            assert (await master.table.ended(number)).state == "SUCCEEDED"
    assert not logs(cluster, others[:2])
    assert len(logs(cluster, others)) == len(others) - 2


async def test_worker_that_stops_requeues_what_waits(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(cluster, PATIENT, slots=1, drain_s=DEADLINE_S) as worker:
        first, *others = await fill_buffer(master, until(go))
        worker.stop.set()
        entries = [master.table.tasks[number].entry for number in others]
        async with asyncio.timeout(DEADLINE_S):
            while len(await master.queue.contains(entries)) < len(entries):
                await asyncio.sleep(0.01)
        assert {master.table.tasks[number].state for number in others} == {"QUEUED"}
        assert not await master.queue.claimed(others)
        go.touch()
        assert (await master.table.ended(first)).state == "SUCCEEDED"
    assert not logs(cluster, others)


async def test_answer_to_a_return_may_be_lost(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(cluster, PATIENT, slots=1, drain_s=DEADLINE_S) as worker:
        first, *others = await fill_buffer(master, until(go))
        master.lose_replies = 1
        worker.stop.set()
        entries = [master.table.tasks[number].entry for number in others]
        async with asyncio.timeout(DEADLINE_S):
            while len(await master.queue.contains(entries)) < len(entries):
                await asyncio.sleep(0.01)
        assert master.lose_replies == 0
        go.touch()
        assert (await master.table.ended(first)).state == "SUCCEEDED"
    # The next worker has them all.
    async with InProcessWorker(cluster, ALWAYS_AHEAD, slots=1):
        for number in others:
            assert (await master.table.ended(number)).state == "SUCCEEDED"


async def test_worker_without_room_on_its_disk_requeues_what_waits(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(cluster, PATIENT, slots=1):
        first, *others = await fill_buffer(master, until(go))
        monkeypatch.setattr(disk.DiskGuard, "_find_shortage", lambda _: "no room")
        for number in others:
            await master.table.wait(number, "QUEUED")
            await master.unclaimed(number)
        assert master.table.tasks[first].state == "RUNNING"
        go.touch()
        assert (await master.table.ended(first)).state == "SUCCEEDED"
        monkeypatch.undo()
        for number in others:
            assert (await master.table.ended(number)).state == "SUCCEEDED"


async def test_claims_of_a_lost_session_are_neither_run_nor_requeued(
    master: FakeMaster,
    cluster: ClusterSettings,
    tmp_path: Path,
    zk_proxy: TcpProxy,
    zk_proxied: str,
) -> None:
    go = tmp_path / "go"
    async with InProcessWorker(cluster_settings(cluster.data, zk_proxied), PATIENT, slots=1):
        first, *others = await fill_buffer(master, until(go))
        zk_proxy.freeze()
        for number in (first, *others):
            await master.unclaimed(number)
        go.touch()
        zk_proxy.heal()
        later = await master.submit("SHELL", SHORT)
        assert (await master.table.ended(later)).state == "SUCCEEDED"
    assert {master.table.tasks[number].state for number in others} == {"CLAIMED"}  # LOST soon
    assert not logs(cluster, others)
    assert not await master.queue.contains([master.table.tasks[n].entry for n in others])
