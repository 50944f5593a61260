"""Claims that go under a worker: what it does about its tasks, and what it leaves alone."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from shoal.coordination import znodes
from shoal.coordination.cluster import layout
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.runtime.settings import ClusterSettings
from shoal.worker import agent
from shoal.worker.execution.context import prepare
from shoal.worker.execution.runner import Runner
from shoal.worker.intake import held_claims
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    alive,
    cluster_settings,
    log_file,
    log_text,
    spool,
    the_worker,
    work_folders,
)
from tests.support.fake_master import FakeMaster
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

SLEEP = {"script": "echo $$; exec sleep 1000"}
NEVER_S = 1e6


async def running(master: FakeMaster, cluster: ClusterSettings) -> tuple[int, int]:
    """Start a long task; return its id and the number of its process."""
    number = await master.submit("SHELL", SLEEP)
    await master.table.wait(number, "RUNNING")
    await eventually(lambda: log_file(cluster.data, number).stat().st_size > 0)
    return number, int(log_text(cluster.data, number))


async def revoke(
    master: FakeMaster, channels: Channels, *numbers: int, worker_id: str | None = None
) -> pb.RevokeResponse:
    """Ask the worker about attempts as a master does."""
    member = await the_worker(master.session)
    address = str(member.data["address"])
    request = pb.RevokeRequest(
        worker_id=worker_id or member.id,
        attempts=[pb.AttemptRef(workflow_instance_id=7, task_instance_id=n) for n in numbers],
    )
    return await call(address, channels.worker(address).Revoke(request, timeout=DEADLINE_S))


def ends(master: FakeMaster, number: int) -> list[pb.Report]:
    reports = (r for r in master.reports if r.attempt.task_instance_id == number)
    return [report for report in reports if report.kind != pb.STARTED]


async def test_task_whose_claim_was_deleted_ends_and_others_run_on(
    master: FakeMaster, cluster: ClusterSettings, worker: InProcessWorker
) -> None:
    number, pid = await running(master, cluster)
    spared, its_pid = await running(master, cluster)
    await master.session.delete(layout.claim(number))
    await eventually(lambda: not alive(pid))
    later = await master.submit("SHELL", {"script": "true"})
    await master.table.ended(later)
    assert alive(its_pid)
    assert await master.queue.claimed([spared]) == {spared}
    assert ends(master, number) == []
    await eventually(lambda: str(number) not in spool(cluster.data))
    worker.at_once.set()


async def test_worker_that_is_asked_ends_what_has_no_claim_and_keeps_the_rest(
    master: FakeMaster,
    cluster: ClusterSettings,
    channels: Channels,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent, "CLAIMS_CHECK_S", NEVER_S)
    async with InProcessWorker(cluster) as worker:
        kept, its_pid = await running(master, cluster)
        dying, pid = await running(master, cluster)
        assert list((await revoke(master, channels, kept, dying, 4711)).held) == [kept, dying]
        await master.session.delete(layout.claim(dying))
        someone_else = await revoke(master, channels, dying, worker_id="another")
        assert someone_else.worker_id == (await the_worker(master.session)).id
        assert alive(pid)
        assert list((await revoke(master, channels, kept, dying)).held) == [kept, dying]
        async with asyncio.timeout(DEADLINE_S):
            while list((await revoke(master, channels, kept, dying)).held) != [kept]:
                await asyncio.sleep(0.02)
        assert not alive(pid)  # before it says that it has nothing of it
        assert alive(its_pid)
        assert ends(master, dying) == []
        worker.at_once.set()


async def test_worker_that_hears_nothing_of_zookeeper_says_at_once_what_it_has(
    master: FakeMaster,
    cluster: ClusterSettings,
    channels: Channels,
    zk_proxy: TcpProxy,
    zk_proxied: str,
) -> None:
    settings = cluster_settings(cluster.data, zk_proxied)
    patient = settings.model_copy(update={"session_timeout_s": 4 * DEADLINE_S})
    async with InProcessWorker(patient) as worker:
        number, pid = await running(master, cluster)
        zk_proxy.freeze()
        assert list((await revoke(master, channels, number)).held) == [number]
        assert alive(pid)
        zk_proxy.heal()
        worker.at_once.set()


async def test_result_on_its_way_is_held(
    master: FakeMaster, cluster: ClusterSettings, channels: Channels, worker: InProcessWorker
) -> None:
    number = await master.submit("SHELL", {"script": "sleep 0.2"})
    await master.table.wait(number, "RUNNING")
    master.open.clear()
    await eventually(lambda: spool(cluster.data) == [str(number)])
    await master.session.delete(layout.claim(number))
    assert list((await revoke(master, channels, number)).held) == [number]
    master.open.set()
    assert (await master.table.ended(number)).state == "SUCCEEDED"


async def test_release_that_waits_spares_the_claim_of_the_next_session(
    master: FakeMaster,
    cluster: ClusterSettings,
    zk_proxy: TcpProxy,
    zk_proxied: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker drops a claim with its session, and takes the same task again at once."""
    monkeypatch.setattr(held_claims, "RELEASE_PAUSE_S", 1.0)  # long enough for that
    async with InProcessWorker(cluster_settings(cluster.data, zk_proxied)) as worker:
        await the_worker(master.session)
        master.open.clear()  # the payload does not come
        number = await master.submit("SHELL", SLEEP)
        await eventually(lambda: number in master.asked)
        zk_proxy.cut()
        await master.unclaimed(number)
        await master.queue.put([master.table.tasks[number].entry])  # as the sweeper does
        zk_proxy.heal()
        await eventually(lambda: master.asked.count(number) == 2)
        await asyncio.sleep(2 * held_claims.RELEASE_PAUSE_S)
        assert await master.queue.claimed([number]) == {number}
        master.open.set()
        await master.table.wait(number, "RUNNING")
        assert await master.queue.claimed([number]) == {number}
        worker.at_once.set()


class Slow:
    """Lets a task be prepared only when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.preparing, self.go_on = threading.Event(), threading.Event()
        self.prepared = threading.Event()
        monkeypatch.setattr("shoal.worker.execution.runner.prepare", self._prepare)

    def _prepare(self, *arguments: Any) -> Any:
        self.preparing.set()
        assert self.go_on.wait(DEADLINE_S)
        made = prepare(*arguments)
        self.prepared.set()
        return made

    async def begin(self, master: FakeMaster, cluster: ClusterSettings, ran: Path) -> int:
        """Return the id of a task that is being prepared; it makes the file ``ran``."""
        number = await master.submit("SHELL", {"script": f"touch '{ran}'; sleep 1000"}, put=False)
        # So that it is prepared in a thread.
        os.mkdir(cluster.data / "workers" / "w" / "1" / "work" / str(number))
        await master.queue.put([master.table.tasks[number].entry])
        await eventually(self.preparing.is_set)
        return number


async def change_session(
    master: FakeMaster, worker: InProcessWorker, zk_proxy: TcpProxy, number: int
) -> None:
    """Return when the worker has another session than that of its claim, or has left."""
    before = await the_worker(master.session)
    zk_proxy.cut()
    await master.unclaimed(number)
    zk_proxy.heal()
    path = znodes.member(layout.WORKERS, before.id)
    async with asyncio.timeout(DEADLINE_S):
        while not worker.task.done():
            stat = await master.session.exists(path)
            if stat is not None and stat.czxid != before.czxid:
                return
            await asyncio.sleep(0.01)


async def test_task_does_not_start_in_another_session_than_that_of_its_claim(
    master: FakeMaster,
    cluster: ClusterSettings,
    zk_proxy: TcpProxy,
    zk_proxied: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker has not ended its tasks yet, and its lease is good again."""
    slow, noticed = Slow(monkeypatch), asyncio.Event()
    ran = tmp_path / "ran"
    lose_session = Runner.lose_session

    async def late(runner: Runner, reason: str) -> None:
        await noticed.wait()
        await lose_session(runner, reason)

    monkeypatch.setattr(Runner, "lose_session", late)
    async with InProcessWorker(cluster_settings(cluster.data, zk_proxied)) as worker:
        await the_worker(master.session)
        number = await slow.begin(master, cluster, ran)
        await change_session(master, worker, zk_proxy, number)
        slow.go_on.set()
        await eventually(slow.prepared.is_set)
        await eventually(lambda: ran.exists() or not work_folders(cluster.data))
        assert not ran.exists()
        noticed.set()
        later = await master.submit("SHELL", {"script": "true"})
        await master.table.ended(later)
    assert not ran.exists()
    assert ends(master, number) == []


async def test_session_that_changes_while_the_worker_drains_ends_its_tasks(
    master: FakeMaster,
    cluster: ClusterSettings,
    zk_proxy: TcpProxy,
    zk_proxied: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow, drains = Slow(monkeypatch), asyncio.Event()
    start_no_more = Runner.start_no_more

    def draining(runner: Runner) -> None:
        drains.set()
        start_no_more(runner)

    monkeypatch.setattr(Runner, "start_no_more", draining)
    # The check before a launch would hide that it was not ended.
    monkeypatch.setattr(Runner, "_require_claim", lambda _runner, _attempt: None)
    async with InProcessWorker(cluster_settings(cluster.data, zk_proxied), drain_s=1e6) as worker:
        await the_worker(master.session)
        number = await slow.begin(master, cluster, tmp_path / "ran")
        worker.stop.set()
        async with asyncio.timeout(DEADLINE_S):
            await drains.wait()
        await change_session(master, worker, zk_proxy, number)
        slow.go_on.set()
    assert not (tmp_path / "ran").exists()
    assert ends(master, number) == []
