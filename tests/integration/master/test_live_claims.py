"""The sweeper tells attempts whose worker is gone from those whose worker lives."""

import asyncio

from shoal.coordination import ZkSession
from shoal.core.states import TaskState
from tests.integration.master.conftest import Bench
from tests.waiting import DEADLINE_S


async def test_task_whose_claim_lives_is_left_alone(bench: Bench, zk_chroot: str) -> None:
    workflow = await bench.publish({"a": {}, "b": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        living = await bench.worker("living")
        (held,) = await living.claim(1)
        await living.fetch([held])
        async with ZkSession(zk_chroot, name="doomed") as session:
            doomed = await bench.worker("doomed", session)
            await doomed.fetch(await doomed.claim(1))
        async with asyncio.timeout(DEADLINE_S):
            # The sweep that finds the one lost has looked at the other, too.
            while len(attempts := await bench.tasks(instance.id, all_attempts=True)) < 3:
                await asyncio.sleep(0.02)
    states = {(each.worker, each.state) for each in attempts if each.worker is not None}
    assert states == {("living", TaskState.CLAIMED), ("doomed", TaskState.LOST)}
