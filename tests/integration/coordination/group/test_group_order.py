"""Revoked first, and to the end; assigned afterwards."""

import asyncio
from contextlib import suppress

from shoal.coordination import Partition
from tests.integration.coordination.group.group_bench import Bench

FINISHING_S = 2.0  # far more than the new owner would need to get the partitions too early


async def test_nobody_gets_a_partition_while_its_old_owner_finishes(zk_chroot: str) -> None:
    taken_on = asyncio.Event()

    async def begin(_: frozenset[Partition]) -> None:
        taken_on.set()

    async def finish(_: frozenset[Partition]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISHING_S):
                await taken_on.wait()

    bench = Bench(zk_chroot)
    try:
        old, new = await bench.join("old"), bench.prepare("new")
        await bench.shared_out(old)
        old.recorder.finishing, new.recorder.working = finish, begin
        await bench.enter(new)
        await bench.shared_out(old, new)
        calls = bench.ledger.calls()
        old.recorder.finishing = None
    finally:
        await bench.close()
    bench.ledger.check()
    assert calls == [
        ("old", "assigned"),
        ("old", "revoking"),
        ("old", "revoked"),
        ("new", "assigned"),
    ]
