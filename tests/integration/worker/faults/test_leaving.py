"""Workers that are stopped, killed, frozen or cut off: what becomes of their tasks."""

import asyncio
import os
import signal
import time
from pathlib import Path

from shoal.coordination import MemberInfo, Members
from shoal.coordination.cluster import layout
from shoal.proto.shoal_pb2 import STARTED
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    alive,
    children,
    cluster_settings,
    log_file,
    log_text,
    spool,
    the_worker,
    until,
    work_folders,
)
from tests.support.fake_master import FakeMaster
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

SLEEP = {"script": "echo $$; exec sleep 1000"}
# Writes the moments (monotonic seconds) at which it lived; all processes share that clock.
LIVES = {
    "script": """
import os, time
print(os.getpid(), flush=True)
while True:
    print(time.monotonic(), flush=True)
    time.sleep(0.005)
"""
}


async def running(master: FakeMaster, cluster: ClusterSettings) -> tuple[int, int]:
    """Start a long task; return its id and the number of its process."""
    number = await master.submit("SHELL", SLEEP)
    await master.table.wait(number, "RUNNING")
    await eventually(lambda: log_file(cluster.data, number).stat().st_size > 0)
    return number, int(log_text(cluster.data, number))


async def claim_gone(master: FakeMaster, number: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await master.queue.claimed([number]):
            await asyncio.sleep(0.01)


async def no_workers(master: FakeMaster) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        Members(master.session, layout.WORKERS, reread_s=0.1) as members,
    ):
        async for view in members.changes():
            if not view:
                return


async def test_sigterm_lets_running_tasks_finish_and_takes_no_new_ones(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    with WorkerProcess(cluster, drain_s=DEADLINE_S) as worker:
        number = await master.submit("SHELL", {"script": until(go)})
        await master.table.wait(number, "RUNNING")
        worker.signal(signal.SIGTERM)
        await eventually(lambda: "worker stopping" in worker.log)
        late = await master.submit("SHELL", {"script": "true"})
        go.touch()
        assert await worker.wait() == 0
    assert master.table.tasks[number].state == "SUCCEEDED"
    assert master.table.tasks[late].state == "QUEUED"
    assert await master.queue.contains([master.table.tasks[late].entry])
    await no_workers(master)


async def test_tasks_that_outlast_the_drain_are_ended_without_a_result(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    with WorkerProcess(cluster, drain_s=0.2) as worker:
        number, pid = await running(master, cluster)
        worker.signal(signal.SIGINT)
        assert await worker.wait() == 0
    assert not alive(pid)
    await claim_gone(master, number)
    assert master.table.tasks[number].state == "RUNNING"  # for the master to declare LOST
    assert spool(cluster.data) == []
    assert work_folders(cluster.data) == []


async def test_second_signal_ends_the_worker_at_once(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    with WorkerProcess(cluster, drain_s=1000, kill_grace_s=1000) as worker:
        number = await master.submit("SHELL", {"script": "trap '' TERM; echo $$; sleep 1000"})
        await master.table.wait(number, "RUNNING")
        await eventually(lambda: log_file(cluster.data, number).stat().st_size > 0)
        worker.signal(signal.SIGTERM)
        await eventually(lambda: "worker stopping" in worker.log)
        worker.signal(signal.SIGTERM)
        assert await worker.wait() == 0
    await claim_gone(master, number)
    assert not alive(int(log_text(cluster.data, number)))


async def test_unfetched_claims_go_back_into_the_queue_when_the_worker_stops(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster):
        await the_worker(master.session)
        master.open.clear()
        number = await master.submit("SHELL", {"script": "true"})
        await eventually(lambda: number in master.asked)
    assert await master.queue.contains([master.table.tasks[number].entry])
    assert not await master.queue.claimed([number])


async def test_result_of_a_killed_agent_is_reported_by_its_successor(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    with WorkerProcess(cluster) as worker:
        script = f"{until(go)}; echo done; exit 3"
        number = await master.submit("SHELL", {"script": script})
        await master.table.wait(number, "RUNNING")
        master.open.clear()
        go.touch()
        await eventually(lambda: spool(cluster.data) == [str(number)])
        worker.signal(signal.SIGKILL)
        await worker.wait()
        master.open.set()
        with WorkerProcess(cluster):
            task = await master.table.ended(number)
            await eventually(lambda: spool(cluster.data) == [])
    assert task.state == "FAILED"
    assert task.report is not None
    assert task.report.exit_code == 3
    assert log_text(cluster.data, number) == "done\n"


async def test_killed_agent_takes_its_tasks_along_and_reports_nothing_of_them(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    with WorkerProcess(cluster) as worker:
        number, pid = await running(master, cluster)
        worker.signal(signal.SIGKILL)
        await worker.wait()
        await eventually(lambda: not alive(pid))
        await eventually(lambda: spool(cluster.data) == [str(number)])
        with WorkerProcess(cluster) as successor:
            await the_worker(master.session, pid=successor.pid)
            await eventually(lambda: spool(cluster.data) == [])
            await claim_gone(master, number)
            later = await master.submit("SHELL", {"script": "true"})
            await master.table.ended(later)
            await eventually(lambda: work_folders(cluster.data) == [])
    assert all(r.kind == STARTED for r in master.reports if r.attempt.task_instance_id == number)
    assert master.table.tasks[number].state == "RUNNING"


async def living(master: FakeMaster, cluster: ClusterSettings) -> tuple[int, int]:
    """Start a task that writes when it lives; return its id and the number of its process."""
    number = await master.submit("PYTHON", LIVES)
    await master.table.wait(number, "RUNNING")
    await eventually(lambda: log_text(cluster.data, number).count("\n") > 2)
    return number, int(log_text(cluster.data, number).split()[0])


def last_sign_of_life(cluster: ClusterSettings, number: int) -> float:
    return float(log_text(cluster.data, number).rpartition("\n")[0].split()[-1])


async def test_frozen_agent_loses_its_tasks_before_anybody_may_run_them_again(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    with WorkerProcess(cluster) as worker:
        number, pid = await living(master, cluster)
        worker.signal(signal.SIGSTOP)
        await claim_gone(master, number)
        free_since = time.monotonic()  # or a little longer
        await eventually(lambda: not alive(pid))
        assert last_sign_of_life(cluster, number) < free_since
        worker.signal(signal.SIGCONT)
        # It comes back, and works on.
        later = await master.submit("SHELL", {"script": "true"})
        await master.table.ended(later)
        assert master.table.tasks[number].state == "RUNNING"


async def test_frozen_agent_and_launcher_lose_their_tasks_in_time_too(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    with WorkerProcess(cluster) as worker:
        number, pid = await living(master, cluster)
        (watchdog,) = children(worker.pid)
        (launcher,) = children(watchdog.pid)
        os.kill(launcher.pid, signal.SIGSTOP)
        worker.signal(signal.SIGSTOP)
        await claim_gone(master, number)
        free_since = time.monotonic()
        await eventually(lambda: not alive(pid))
        assert last_sign_of_life(cluster, number) < free_since
        worker.signal(signal.SIGCONT)
        later = await master.submit("SHELL", {"script": "true"})
        await master.table.ended(later)


async def test_thawed_node_kills_its_stale_tasks_and_reports_nothing_of_them(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    with WorkerProcess(cluster) as worker:
        number, pid = await living(master, cluster)
        (watchdog,) = children(worker.pid)
        (launcher,) = children(watchdog.pid)
        node = [pid, launcher.pid, watchdog.pid, worker.pid]
        for each in node:
            os.kill(each, signal.SIGSTOP)
        await claim_gone(master, number)
        for each in node:
            os.kill(each, signal.SIGCONT)
        await eventually(lambda: not alive(pid))
        later = await master.submit("SHELL", {"script": "true"})
        await master.table.ended(later)
    ends = [r for r in master.reports if r.attempt.task_instance_id == number and r.kind != STARTED]
    assert ends == []
    assert master.table.tasks[number].state == "RUNNING"  # for the master to declare LOST


async def test_expired_session_ends_all_tasks_and_the_worker_works_on(
    master: FakeMaster, cluster: ClusterSettings, zk_proxy: TcpProxy, zk_proxied: str
) -> None:
    cut_off = cluster_settings(cluster.data, zk_proxied)
    async with InProcessWorker(cut_off):
        number, pid = await living(master, cluster)
        before = await the_worker(master.session)
        zk_proxy.cut()
        await claim_gone(master, number)
        free_since = time.monotonic()
        await eventually(lambda: not alive(pid))
        assert last_sign_of_life(cluster, number) < free_since
        zk_proxy.heal()
        later = await master.submit("SHELL", {"script": "true"})
        await master.table.ended(later)
        after: MemberInfo = await the_worker(master.session)
        # The log of the interrupted attempt is found under the same name.
        assert after.id == before.id
        assert after.czxid > before.czxid
    assert master.table.tasks[number].state == "RUNNING"


async def test_short_interruption_of_the_connection_changes_nothing(
    master: FakeMaster, cluster: ClusterSettings, zk_proxy: TcpProxy, zk_proxied: str
) -> None:
    async with InProcessWorker(cluster_settings(cluster.data, zk_proxied)) as worker:
        number, pid = await running(master, cluster)
        for _ in range(3):
            zk_proxy.drop()
            later = await master.submit("SHELL", {"script": "true"})
            await master.table.ended(later)
        assert alive(pid)
        assert await master.queue.claimed([number]) == {number}
        worker.at_once.set()


async def test_two_workers_of_one_name_never_share_a_folder(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster), InProcessWorker(cluster):
        await the_worker(master.session, 2)
        async with Members(master.session, layout.WORKERS) as members:
            names = {member.data["name"] for member in members.current().values()}
    assert names == {"w-1", "w-2"}
    async with InProcessWorker(cluster):
        assert (await the_worker(master.session)).data["name"] == "w-1"


async def test_worker_that_cannot_start_says_why_and_exits_with_an_error(
    cluster: ClusterSettings,
) -> None:
    (cluster.data / "tls" / "node.pem").unlink()
    with WorkerProcess(cluster) as worker:
        assert await worker.wait() == 1
    assert "worker failed" in worker.log
    assert "node.pem" in worker.log


async def test_worker_may_be_stopped_while_it_waits_for_zookeeper(
    cluster: ClusterSettings, zk_proxy: TcpProxy, zk_proxied: str
) -> None:
    zk_proxy.freeze()
    async with asyncio.timeout(DEADLINE_S):
        async with InProcessWorker(cluster_settings(cluster.data, zk_proxied)) as worker:
            await eventually((cluster.data / "workers/w/1/spool").exists)
            worker.stop.set()
    zk_proxy.heal()
