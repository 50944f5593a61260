"""One of several processes leads and counts; the others wait to take its place.

Start it in two terminals, then stop the leader with Ctrl-C or kill -9 it: the other one goes on
counting where it left off. Every write carries the leader's fence, so even a leader that slept
through its own end could no longer write.

    python examples/coordination/election.py --name alice
    python examples/coordination/election.py --name bob
"""

import argparse
import asyncio
import json
import logging
import os
import signal
from pathlib import Path

import structlog

from shoal.coordination import (
    CoordinationError,
    Election,
    ElectionListener,
    NodeExists,
    SetData,
    ZkSession,
    leader_of,
)

COUNTER = "/counter"


class Counter(ElectionListener):
    """Counts in ZooKeeper, as long as it leads."""

    def __init__(self, session: ZkSession, name: str) -> None:
        self.session, self.name = session, name
        self.election = Election(session, "counter", name, self)
        self.counting: asyncio.Task[None] | None = None

    async def on_elected(self, epoch: int) -> None:
        print(f"{self.name} leads, epoch {epoch}", flush=True)
        self.counting = asyncio.create_task(self.count())

    async def on_deposed(self) -> None:
        await self.stop()
        print(f"{self.name} steps back", flush=True)

    async def on_lost(self) -> None:
        await self.stop()
        print(f"{self.name} has lost the lead", flush=True)

    async def stop(self) -> None:
        if self.counting:
            self.counting.cancel()
            await asyncio.gather(self.counting, return_exceptions=True)

    async def count(self) -> None:
        while True:
            try:
                value = int((await self.session.get(COUNTER)).data) + 1
                write = SetData(COUNTER, str(value).encode())
                await self.session.multi([self.election.fence, write])
                print(f"{self.name} counts {value}", flush=True)
            except CoordinationError as error:
                print(f"{self.name} could not count: {error}", flush=True)
            await asyncio.sleep(1)


async def follow(session: ZkSession, name: str) -> None:
    """Say who leads, whenever that changes."""
    seen = None
    while True:
        leader = await session.retry(lambda: leader_of(session, "counter"))
        if leader != seen and leader and leader.candidate_id != name:
            print(f"{name} sees {leader.candidate_id} lead, epoch {leader.epoch}", flush=True)
        seen = leader
        await asyncio.sleep(0.5)


async def main(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    name, timeout_s = arguments.name, arguments.session_timeout
    async with ZkSession(arguments.zookeeper, session_timeout_s=timeout_s) as session:
        try:
            await session.create(COUNTER, b"0")
        except NodeExists:
            print(f"{name} finds the counter", flush=True)
        async with Counter(session, name).election:
            following = asyncio.create_task(follow(session, name))
            await stop.wait()
            following.cancel()


def default_zookeeper() -> str:
    """Return the address of the cluster that `shoal up` started here, or ZooKeeper's usual one."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (state := folder / ".shoal" / "cluster.json").exists():
            return f"{json.loads(state.read_text())['zookeeper']}/examples"
    return "127.0.0.1:2181/examples"


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--name", default=f"process-{os.getpid()}", help="who stands for election")
    parser.add_argument("--zookeeper", default=default_zookeeper(), help="host:port/folder")
    parser.add_argument("--session-timeout", type=float, default=5, metavar="SECONDS")
    asyncio.run(main(parser.parse_args()))
