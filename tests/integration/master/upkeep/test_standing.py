"""Workers ask any master how instances stand, before they delete logs."""

import grpc
import pytest

from shoal.coordination import Owners, partition_of
from shoal.core.runs.commands import CommandType
from shoal.core.runs.states import WorkflowState
from shoal.proto import shoal_pb2 as pb
from shoal.proto.errors import PeerUnavailable
from shoal.worker.masters import Masters, Standings
from tests.integration.master.conftest import PARTITIONS, Bench
from tests.support.waiting import DEADLINE_S


async def test_open_ended_and_unknown_instances_are_told_apart(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}})
    ask = Standings(Masters(Owners(bench.session), bench.channels), PARTITIONS)
    async with bench.master():
        runs = await bench.start(workflow, "open")
        over = await bench.start(workflow, "over")
        await bench.command(CommandType.STOP, workflow, "stop", over)
        assert await bench.ended(over.id) is WorkflowState.STOPPED
        found = await ask([runs.id, over.id, 999])
        ended = await bench.instance(over.id)
        assert ended.finished_at is not None
        assert set(found.open) == {runs.id}
        assert found.now >= ended.finished_at.timestamp()
        assert found.ended == {over.id: pytest.approx(ended.finished_at.timestamp())}


async def test_without_a_master_nobody_can_tell(bench: Bench) -> None:
    ask = Standings(Masters(Owners(bench.session), bench.channels), PARTITIONS)
    async with bench.master():
        await bench.start(await bench.publish({"a": {}}))
        await ask([1])
    with pytest.raises(PeerUnavailable):
        await ask([1])


async def test_not_too_many_at_once(bench: Bench) -> None:
    async with bench.master():
        await bench.start(await bench.publish({"a": {}}))
        owner = await Owners(bench.session).owner_of(partition_of("k", PARTITIONS))
        assert owner is not None
        request = pb.StandingRequest(workflow_instance_ids=range(1_001))
        with pytest.raises(grpc.aio.AioRpcError, match="at most 1000"):
            await bench.channels.master(owner.address).Standing(request, timeout=DEADLINE_S)
