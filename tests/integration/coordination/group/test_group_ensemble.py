"""Groups on an ensemble: what its members do not notice, and what they come back from."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from tests.integration.coordination.conftest import eventually
from tests.integration.coordination.group.group_bench import PATIENCE_S, Bench, jobs
from tests.support.zookeeper.ensemble import Ensemble

ALL = jobs(*range(6))


@pytest.fixture
async def bench(ensemble_chroot: str) -> AsyncIterator[Bench]:
    bench = Bench(ensemble_chroot)
    try:
        yield bench
    finally:
        await bench.close()
    bench.ledger.check()


async def test_the_death_of_the_leading_server_moves_nothing(
    bench: Bench, ensemble: Ensemble
) -> None:
    peers = [await bench.join(name) for name in ("a", "b", "c")]
    await bench.shared_out(*peers)
    told, generation = list(bench.ledger.told), peers[0].group.generation
    ensemble.leader().kill()
    for peer in peers:  # every session goes on at another server
        await peer.session.retry(partial(peer.session.sync, "/"))
    newcomer = await bench.join("d")
    assert bench.ledger.told[: len(told)] == told
    await bench.shared_out(*peers, newcomer)
    assert newcomer.group.generation == generation + 2
    assert "lost" not in {call for _, call in bench.ledger.calls()}
    assert bench.ledger.moved(len(told)) == 1


async def test_without_a_quorum_all_is_lost_and_with_it_shared_out_again(
    bench: Bench, ensemble: Ensemble
) -> None:
    a, b = await bench.join("a", timeout_s=8.0), await bench.join("b", timeout_s=8.0)
    await bench.shared_out(a, b)
    since = len(bench.ledger.told)
    for server in ensemble.servers[1:]:
        server.kill()
    await eventually(lambda: not bench.ledger.holders, PATIENCE_S)
    assert sorted(bench.ledger.calls()[since:]) == [("a", "lost"), ("b", "lost")]
    assert a.owned == b.owned == frozenset()
    ensemble.start()
    await asyncio.to_thread(ensemble.wait_ready)
    await bench.shared_out(a, b)


async def test_members_at_different_servers_hand_over_in_order(
    bench: Bench, ensemble: Ensemble, ensemble_chroot: str
) -> None:
    """What one server knows already another one may learn later; nobody shares for that."""
    chroot = ensemble_chroot.partition("/")[2]
    peers = []
    for number in range(6):
        server = ensemble.servers[number % 3]
        peers.append(await bench.join(f"m{number}", address=f"{server.address}/{chroot}"))
    await bench.shared_out(*peers)
    for peer in peers[:3]:
        await peer.leave()
    await bench.shared_out(*peers[3:])
