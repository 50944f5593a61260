"""Masters that refuse, move, forget and fall silent: nothing gets lost, nothing is done twice."""

import asyncio
from pathlib import Path

from shoal.proto import shoal_pb2 as pb
from shoal.proto.tls import TlsFiles
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, spool, until
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


def starts(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def test_refused_attempt_is_not_run_and_its_claim_is_released(
    master: FakeMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    number = await master.submit("SHELL", {"script": f"touch '{mark}'"}, put=False)
    master.table.tasks[number].state = "KILLED"
    await master.queue.put([master.table.tasks[number].entry])
    await eventually(lambda: number in master.fetched)
    await master.unclaimed(number)
    after = await master.submit("SHELL", {"script": "true"})
    await master.table.ended(after)
    assert not mark.exists()


async def test_retry_verdicts_are_asked_again(master: FakeMaster, worker: InProcessWorker) -> None:
    master.retries = 3
    number = await master.submit("SHELL", {"script": "true"})
    assert (await master.table.ended(number)).state == "SUCCEEDED"
    assert master.fetched.count(number) == 4
    master.retries = 2
    number = await master.submit("SHELL", {"script": "sleep 0.1"})
    assert (await master.table.ended(number)).state == "SUCCEEDED"


async def test_lost_reply_is_repeated_and_the_attempt_runs_once(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    master.lose_replies = 2
    number = await master.submit("SHELL", {"script": f"echo x >>'{ledger}'"})
    task = await master.table.ended(number)

    def ends() -> list[pb.Report]:
        return [report for report in master.reports if report.kind == pb.SUCCEEDED]

    await eventually(lambda: len(ends()) >= 2)
    await eventually(lambda: spool(cluster.data) == [])
    await master.unclaimed(number)
    assert task.committed == 1
    assert starts(ledger) == "x\n"


async def test_fetch_moves_on_to_the_new_owner(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    # The worker knows the old owner: it has just spoken to it.
    for number in await master.submit_many(4, "SHELL", {"script": "true"}):
        await master.table.ended(number)
    async with FakeMaster(
        cluster.zookeeper,
        TlsFiles.of(cluster),
        master.table,
        master_id="successor",
        partitions=range(0),
    ) as successor:
        (number,) = await master.submit_many(1, "SHELL", {"script": "true"}, put=False)
        partition = number % 4
        await master.disown(partition)
        await master.queue.put([master.table.tasks[number].entry])
        await eventually(lambda: number in master.fetched)
        assert master.table.tasks[number].state == "QUEUED"
        await master.vacate(partition)
        await successor.own(partition)
        await master.table.ended(number)
        assert number in successor.fetched


async def test_result_moves_on_to_the_new_owner(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    number = await master.submit("SHELL", {"script": until(go)})
    await master.table.wait(number, "RUNNING")
    await master.disown(number % 4)
    go.touch()
    await eventually(lambda: master.reports[-1].kind == pb.SUCCEEDED)
    assert spool(cluster.data) == [str(number)]
    await master.vacate(number % 4)
    async with FakeMaster(
        cluster.zookeeper,
        TlsFiles.of(cluster),
        master.table,
        master_id="successor",
        partitions=range(number % 4, number % 4 + 1),
    ):
        assert (await master.table.ended(number)).state == "SUCCEEDED"
        await eventually(lambda: spool(cluster.data) == [])


async def test_a_partition_without_owner_does_not_hold_up_the_others(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    await master.disown(1)
    await master.vacate(1)
    stuck, *others = await master.submit_many(4, "SHELL", {"script": "true"})
    assert stuck % 4 == 1
    for number in others:
        await master.table.ended(number)
    assert master.table.tasks[stuck].state == "QUEUED"
    assert await master.queue.claimed([stuck]) == {stuck}
    await master.own(1)
    await master.table.ended(stuck)


async def test_results_wait_for_a_silent_master_while_slots_are_used_on(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    numbers = await master.submit_many(4, "SHELL", {"script": until(go)})
    for number in numbers:
        await master.table.wait(number, "RUNNING")
    master.open.clear()
    go.touch()
    await eventually(lambda: len(spool(cluster.data)) == 4)
    # All slots are free again: further tasks are claimed, though no master answers their fetch.
    more = await master.submit_many(2, "SHELL", {"script": "true"})
    async with asyncio.timeout(DEADLINE_S):
        while await master.queue.claimed(more) != set(more):
            await asyncio.sleep(0.02)
    master.open.set()
    for number in (*numbers, *more):
        await master.table.ended(number)
    await eventually(lambda: spool(cluster.data) == [])


async def test_running_attempt_that_the_master_gave_up_is_ended(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    number = await master.submit("SHELL", {"script": "sleep 1000"}, put=False)
    master.open.clear()
    await master.queue.put([master.table.tasks[number].entry])
    await eventually(lambda: number in master.asked)
    granted = asyncio.create_task(master.table.wait(number, "CLAIMED"))
    master.open.set()
    task = await granted
    task.worker = "somebody else"  # STARTED will be answered SUPERSEDED
    await master.unclaimed(number)
    assert task.report is None
    assert spool(cluster.data) == []
