"""Attempts that are ended: by request, at every moment, with everything they started."""

from pathlib import Path

from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    alive,
    kill,
    log_text,
    spool,
    the_worker,
    until,
)
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

# Ignores TERM, leaves its session, its group and its parent, and clears its environment.
NASTY = """\
trap '' TERM HUP INT
echo $$
inner='echo $$; exec sleep 1000'
export inner
setsid sh -c 'trap "" TERM; echo $$; (env -i setsid sh -c "$inner" &); sleep 1000' &
sleep 1000
"""


async def test_kill_ends_a_nasty_tree_and_reports_the_reason(
    master: FakeMaster, worker: InProcessWorker, channels: Channels, cluster: ClusterSettings
) -> None:
    number = await master.submit("SHELL", {"script": NASTY})
    await master.table.wait(number, "RUNNING")
    await eventually(lambda: log_text(cluster.data, number).count("\n") == 3)
    pids = [int(line) for line in log_text(cluster.data, number).split()]
    assert all(alive(pid) for pid in pids)
    assert await kill(channels, await the_worker(master.session), number, 12345) == [number]
    task = await master.table.ended(number)
    assert task.state == "KILLED"
    assert task.report is not None
    assert task.report.reason == "stopped by alice"
    assert not any(alive(pid) for pid in pids)


async def test_task_may_clean_up_in_the_grace_period(
    master: FakeMaster, channels: Channels, cluster: ClusterSettings
) -> None:
    async with InProcessWorker(cluster, kill_grace_s=DEADLINE_S):
        script = "trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.05; done"
        number = await master.submit("SHELL", {"script": script})
        await master.table.wait(number, "RUNNING")
        await eventually(lambda: log_text(cluster.data, number) == "up\n")
        await kill(channels, await the_worker(master.session), number)
        assert (await master.table.ended(number)).state == "KILLED"
        assert log_text(cluster.data, number).endswith("cleaned\n")


async def test_kill_before_the_payload_came_reports_without_starting(
    master: FakeMaster, worker: InProcessWorker, channels: Channels, cluster: ClusterSettings
) -> None:
    member = await the_worker(master.session)
    master.open.clear()
    number = await master.submit("SHELL", {"script": "echo must not run"})
    await eventually(lambda: number in master.asked)
    # The master has decided, but its answer is on the way.
    task = master.table.tasks[number]
    task.state, task.worker = "CLAIMED", member.id
    assert await kill(channels, member, number) == [number]
    await eventually(lambda: spool(cluster.data) == [str(number)])
    master.open.set()
    assert (await master.table.ended(number)).state == "KILLED"
    assert not (cluster.data / "workers/w/1/logs/tests.wf").exists()


async def test_killed_while_its_result_is_on_the_way_keeps_its_result(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    cluster: ClusterSettings,
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    number = await master.submit("SHELL", {"script": until(go)})
    await master.table.wait(number, "RUNNING")
    master.open.clear()
    go.touch()
    await eventually(lambda: spool(cluster.data) == [str(number)])
    assert await kill(channels, await the_worker(master.session), number) == [number]
    master.open.set()
    assert (await master.table.ended(number)).state == "SUCCEEDED"


async def test_the_first_reason_counts(
    master: FakeMaster, worker: InProcessWorker, channels: Channels
) -> None:
    number = await master.submit("SHELL", {"script": "trap '' TERM; sleep 1000"})
    await master.table.wait(number, "RUNNING")
    member = await the_worker(master.session)
    await kill(channels, member, number, reason="first")
    await kill(channels, member, number, reason="second")
    report = (await master.table.ended(number)).report
    assert report is not None
    assert report.reason == "first"
    assert await kill(channels, member, 999) == []
