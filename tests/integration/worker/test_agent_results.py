"""Results that no master has committed yet."""

import asyncio
from pathlib import Path

from shoal.proto import shoal_pb2 as pb
from tests.fake_master import FakeMaster
from tests.integration.worker.agent_kit import InProcessWorker, eventually

pytest_plugins = ["tests.integration.worker.agent_fixtures"]

DEADLINE_S = 30.0


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
    # Whatever the worker asked ZooKeeper for in the meantime is done before this one's claim.
    later = await master.submit("SHELL", {"script": "true"})
    assert later % 4 != number % 4
    await master.table.ended(later, timeout_s=DEADLINE_S)
    assert await master.queue.claimed([number]) == {number}

    master.owned.add(number % 4)
    await master.table.ended(number, timeout_s=DEADLINE_S)
    async with asyncio.timeout(DEADLINE_S):
        while await master.queue.claimed([number]):
            await asyncio.sleep(0.01)
