"""Whatever happens to the consumers and their connections, no message is lost or overtaken."""

import asyncio
import random
from contextlib import AsyncExitStack

import pytest
import structlog

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import CoordinationError, GroupSettings, ZkSession
from shoal.coordination.messages import Consumer, ConsumerSettings, Producer, waiting
from tests.integration.coordination.conftest import connect
from tests.support.servers.proxy import TcpProxy
from tests.support.zookeeper.secure import proxy_to
from tests.support.zookeeper.server import expire_session

log = structlog.get_logger()

KEYS, EACH, CONSUMERS, FAULTS = 12, 15, 3, 8
SESSION_S = 2.0  # if one ends because the machine is slow, that is one more fault
DEADLINE_S = 150.0
GROUP = GroupSettings(initial_rebalance_delay_s=0.0, reread_s=1.0)
SETTINGS = ConsumerSettings(ack_wait_s=2.0, max_deliveries=1000, max_in_flight=4)


class Site:
    """A consumer, its session, and the line between it and the server."""

    def __init__(self, name: str, proxy: TcpProxy, session: ZkSession, ledger: "Ledger") -> None:
        self.name, self.proxy, self.session, self.ledger = name, proxy, session, ledger
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._consume(), name=self.name)

    async def stop(self) -> None:
        """As a program does that fails in the middle of its work."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _consume(self) -> None:
        consumer = Consumer(
            self.session, "t", self.name, settings=SETTINGS, group_settings=GROUP, partitions=4
        )
        async with consumer:
            async for delivery in consumer:
                key, number = delivery.id.split("-")
                self.ledger.delivered[key].append(int(number))
                await asyncio.sleep(0.02)
                try:
                    await delivery.ack()
                except CoordinationError:
                    continue  # it comes again, here or elsewhere, if it is still there
                self.ledger.acknowledged.add(delivery.id)


class Ledger:
    def __init__(self) -> None:
        self.delivered: dict[str, list[int]] = {f"k{number}": [] for number in range(KEYS)}
        self.acknowledged: set[str] = set()


async def strike(site: Site, chance: random.Random, zookeeper: ZooKeeperServer) -> None:
    """Do something bad to a site, and make it good again."""
    fault = chance.choice(["drop", "freeze", "swallow", "expire", "restart"])
    log.info("fault", fault=fault, site=site.name)
    match fault:
        case "drop":
            site.proxy.drop()
        case "freeze":
            site.proxy.freeze()
            await asyncio.sleep(chance.uniform(0.2, 2 * SESSION_S))
            site.proxy.heal()
        case "swallow":
            site.proxy.swallow_replies = True
            await asyncio.sleep(chance.uniform(0.0, 0.2))
            site.proxy.drop()
            site.proxy.heal()
        case "expire":
            await site.session.connected()
            await expire_session(site.session, zookeeper)
        case "restart":
            await site.stop()
            site.start()


@pytest.mark.timeout(3 * DEADLINE_S)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_consumers_in_trouble_lose_and_reorder_nothing(
    seed: int, session: ZkSession, zookeeper: ZooKeeperServer, zk_chroot: str
) -> None:
    chance = random.Random(seed)
    ledger = Ledger()
    async with AsyncExitStack() as stack:
        sites: list[Site] = []
        for number in range(CONSUMERS):
            proxy = await stack.enter_async_context(proxy_to(zookeeper.address))
            address = f"{proxy.address}/{zk_chroot.partition('/')[2]}"
            line = await stack.enter_async_context(
                connect(address, session_timeout_s=SESSION_S, close_timeout_s=1.0)
            )
            sites.append(Site(f"site {number}", proxy, line, ledger))
            sites[-1].start()
            stack.push_async_callback(sites[-1].stop)

        async def produce() -> None:
            async with Producer(session, "t", partitions=4) as producer:
                for number in range(EACH):
                    for key in ledger.delivered:
                        message_id = f"{key}-{number}"
                        await producer.put(key, b"", message_id=message_id)

        producing = asyncio.create_task(produce())
        for _ in range(FAULTS):
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            await strike(chance.choice(sites), chance, zookeeper)
        async with asyncio.timeout(DEADLINE_S):
            await producing
        async with asyncio.timeout(DEADLINE_S):
            while await waiting(session, "t"):
                await asyncio.sleep(0.05)
    for key, numbers in ledger.delivered.items():
        assert set(numbers) == set(range(EACH)), key
        # A message comes again only while it is not acknowledged, and until then none follows it.
        assert numbers == sorted(numbers), key
    # Those whose answer was lost are not among them.
    assert len(ledger.acknowledged) > KEYS * EACH / 2
