"""Share a list of jobs among as many processes as there are.

Start it in two or three terminals: each runs its part of the list. Stop one with Ctrl-C and its
jobs move to the others at once; kill -9 one and they move when its session is over. Only what
must move moves. Leave a name out of --jobs in all processes to end that job.

    python examples/coordination/jobs.py --name one
    python examples/coordination/jobs.py --name two
"""

import argparse
import asyncio
import json
import logging
import os
import signal
from pathlib import Path

import structlog

from shoal.coordination import BalancedJobs, ZkSession

CITIES = "Amsterdam,Athens,Berlin,Lisbon,London,Madrid,Oslo,Paris,Rome,Vienna"


async def watch_city(name: str, city: str, epoch: int) -> None:
    """What a job does until it is cancelled; here, as if it looked at the city's weather."""
    print(f"{name} begins {city}, epoch {epoch}", flush=True)
    try:
        while True:
            await asyncio.sleep(10)
            print(f"{name} looks at {city}", flush=True)
    finally:
        print(f"{name} ends {city}", flush=True)


async def main(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    name, timeout_s = arguments.name, arguments.session_timeout

    async def run(city: str, epoch: int) -> None:
        await watch_city(name, city, epoch)

    async with (
        ZkSession(arguments.zookeeper, session_timeout_s=timeout_s) as session,
        BalancedJobs(session, "cities", name, arguments.jobs, run) as jobs,
    ):
        ended = asyncio.create_task(jobs.wait())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        print(f"{name} hands over {len(jobs.running)} jobs", flush=True)
    await ended  # raises what ended it, if it was not we


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
    parser.add_argument("--name", default=f"process-{os.getpid()}", help="who takes part")
    parser.add_argument(
        "--jobs", default=CITIES, type=lambda text: text.split(","), help="with commas between"
    )
    parser.add_argument("--zookeeper", default=default_zookeeper(), help="host:port/folder")
    parser.add_argument("--session-timeout", type=float, default=5, metavar="SECONDS")
    asyncio.run(main(parser.parse_args()))
