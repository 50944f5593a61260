"""Results that no master has committed yet."""

import signal
from pathlib import Path

from shoal.proto import shoal_pb2 as pb
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, WorkerProcess, the_worker
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


async def test_claim_is_held_until_the_result_is_committed(
    master: FakeMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    """A task that is neither claimed nor ended would be started once more."""
    go = tmp_path / "go"
    script = f"until [ -e '{go}' ]; do sleep 0.02; done"
    number = await master.submit("SHELL", {"script": script})
    await master.table.wait(number, "RUNNING", timeout_s=DEADLINE_S)
    await master.disown(number % 4)
    go.touch()
    await eventually(lambda: master.reports[-1].kind == pb.SUCCEEDED, timeout_s=DEADLINE_S)
    # Claims go in the order in which they are dropped, so one dropped too early is gone with the
    # claim of a later task.
    later = await master.submit("SHELL", {"script": "true"})
    assert later % 4 != number % 4
    await master.table.ended(later, timeout_s=DEADLINE_S)
    await master.unclaimed(later)
    assert await master.queue.claimed([number]) == {number}

    master.owned.add(number % 4)
    await master.table.ended(number, timeout_s=DEADLINE_S)
    await master.unclaimed(number)


async def test_result_that_the_disk_refuses_is_reported_all_the_same(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    """It is not stored, so until a master has it, it lives and dies with this agent."""
    await the_worker(master.session)
    folder = cluster.data / "workers" / "w" / "1" / "spool"
    folder.rmdir()
    folder.touch()  # a file in the folder's place: nothing can be written below it
    number = await master.submit("SHELL", {"script": "true"})
    assert (await master.table.ended(number, timeout_s=DEADLINE_S)).state == "SUCCEEDED"
    bad = await master.submit("SHELL", {"script": "exit 3"})
    task = await master.table.ended(bad, timeout_s=DEADLINE_S)
    assert task.report is not None
    assert (task.state, task.report.exit_code) == ("FAILED", 3)
    assert "cannot store the exit record" in task.report.reason


async def test_result_that_was_neither_stored_nor_reported_ends_as_a_loss(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    """The claim goes with the worker, so the masters run the task again."""
    go = tmp_path / "go"
    with WorkerProcess(cluster) as worker:
        await the_worker(master.session)
        folder = cluster.data / "workers" / "w" / "1" / "spool"
        folder.rmdir()
        folder.touch()
        script = f"until [ -e '{go}' ]; do sleep 0.02; done"
        number = await master.submit("SHELL", {"script": script})
        await master.table.wait(number, "RUNNING", timeout_s=DEADLINE_S)
        await master.disown(number % 4)
        go.touch()
        await eventually(lambda: "result not stored" in worker.log)
        assert await master.queue.claimed([number]) == {number}
        worker.signal(signal.SIGKILL)
        await worker.wait()
    await master.unclaimed(number)
    assert master.table.tasks[number].state == "RUNNING"  # for the master to declare LOST
