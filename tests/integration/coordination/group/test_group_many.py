"""Thirty members and 128 partitions: they agree, evenly, and move no more than they must."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.integration.coordination.group.group_bench import QUICK, Bench

COUNT, TOPICS = 128, {"jobs": 128}
# Nobody is evicted because thirty members in one process are slow: that would move more.
PATIENT = replace(QUICK, rebalance_timeout_s=600.0)


@pytest.fixture
async def bench(zk_chroot: str) -> AsyncIterator[Bench]:
    bench = Bench(zk_chroot)
    bench.patience_s = 180.0  # thirty processes' work in one
    try:
        yield bench
    finally:
        await asyncio.gather(*(peer.leave() for peer in bench.peers.values()))
    bench.ledger.check()


@pytest.mark.timeout(400)
async def test_thirty_members_converge_and_one_more_or_less_moves_little(bench: Bench) -> None:
    peers = await asyncio.gather(
        *(bench.join(f"m{n:02d}", topics=TOPICS, settings=PATIENT) for n in range(30))
    )
    await bench.shared_out(*peers, count=COUNT)

    since = len(bench.ledger.told)
    newcomer = await bench.join("newcomer", topics=TOPICS, settings=PATIENT)
    await bench.shared_out(*peers, newcomer, count=COUNT)
    assert bench.ledger.moved(since) == len(newcomer.owned) == 4

    since, gone = len(bench.ledger.told), peers.pop(7)
    had = len(gone.owned)
    await gone.leave()
    await bench.shared_out(*peers, newcomer, count=COUNT)
    assert bench.ledger.moved(since) == had
