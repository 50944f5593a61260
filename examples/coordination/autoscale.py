"""Run as many consumers of messages.py as there are messages to work on.

Start it in two terminals: one is elected, and starts and stops `messages.py consume` processes;
the other waits. Put a few hundred messages and watch the consumers come, and go when all is done.
Kill -9 the leader: its consumers finish and end, and the other process takes over.

    python examples/coordination/autoscale.py --name one
    python examples/coordination/messages.py produce --count 300 --project atlas --project borea
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path

import structlog

from shoal.coordination import ZkSession
from shoal.coordination.autoscale import (
    Autoscaler,
    LocalProcesses,
    Observation,
    ScalingSettings,
)
from shoal.coordination.messages import waiting

MESSAGES = Path(__file__).with_name("messages.py")


async def main(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings = ScalingSettings(
        min_count=1,
        max_count=arguments.max,
        slots=20,  # here: so many waiting messages are worth a consumer of their own
        max_step_up=2,
        cool_down_s=arguments.cool_down,
    )
    command = [sys.executable, str(MESSAGES), "consume", "--zookeeper", arguments.zookeeper]
    command += ["--session-timeout", str(arguments.session_timeout)]
    async with (
        ZkSession(arguments.zookeeper, session_timeout_s=arguments.session_timeout) as session,
        LocalProcesses(command) as consumers,
    ):

        async def observe() -> Observation:
            backlog = await waiting(session, "mail")
            print(f"{arguments.name}: {backlog} wait, consumers {consumers.pids}", flush=True)
            return Observation(backlog, running=0)  # the backlog has those that are worked on

        async with Autoscaler(
            session,
            "consumers of mail",
            arguments.name,
            observe,
            consumers,
            settings,
            interval_s=arguments.interval,
        ):
            print(f"{arguments.name} stands for election", flush=True)
            await stop.wait()


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
    parser.add_argument("--max", type=int, default=4, help="consumers at most")
    parser.add_argument("--interval", type=float, default=2, metavar="SECONDS")
    parser.add_argument("--cool-down", type=float, default=10, metavar="SECONDS")
    parser.add_argument("--zookeeper", default=default_zookeeper(), help="host:port/folder")
    parser.add_argument("--session-timeout", type=float, default=5, metavar="SECONDS")
    asyncio.run(main(parser.parse_args()))
