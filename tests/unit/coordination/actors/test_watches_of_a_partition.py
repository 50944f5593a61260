"""A partition that is wanted again and again leaves one watch, in virtual time."""

import asyncio

from shoal.coordination import OwnerNodes, Ownership, OwnershipListener, ZkSession
from tests.support.simulation.world import Process, World
from tests.support.simulation.zookeeper import SimulatedServer, simulated_sessions

PATH = "/owned/0/owner"
TIMES = 50


async def _ignore(*_: object) -> None:
    return


async def _want(owner_id: str, times: int) -> None:
    """Want a partition again and again, the last time for ever."""
    listener: OwnershipListener[int] = OwnershipListener(_ignore, _ignore, _ignore)
    async with (
        ZkSession("simulated:1/app", connect_timeout_s=1e6) as session,
        Ownership(session, OwnerNodes(lambda _: PATH, owner_id), listener) as ownership,
    ):
        for _ in range(times):
            ownership.set_wanted(set())
            await asyncio.sleep(0.1)
            ownership.set_wanted({0})
            await asyncio.sleep(0.1)
        await asyncio.get_running_loop().create_future()


def test_partition_of_another_session_that_is_wanted_again_and_again_has_one_watch() -> None:
    world = World(0)
    SimulatedServer(world)
    holder, other = Process(world, "holder"), Process(world, "other")
    with simulated_sessions():
        try:
            tasks = [holder.start(_want("holder", 1), "holder")]
            world.run_for(5.0)
            tasks.append(other.start(_want("other", TIMES), "other"))
            world.run_for(5.0 + 0.2 * TIMES)
            assert not world.problems
            assert not any(task.done() for task in tasks)
            # Nobody has changed the holder's node, so no watch on it has fired.
            assert other.connections[0].watched.count(f"/app{PATH}") == 1
        finally:
            for process in world.processes:
                process.dispose()
