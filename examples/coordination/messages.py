"""Messages that wait until a consumer has dealt with them.

Start `consume` in two terminals and `produce` in a third. Each message is worked on by one
consumer, and those of one project in their order. Kill -9 a consumer: what it had in its hands
goes to the other one. A message with "poison" in it is never acknowledged; after five deliveries
it is a dead letter, which `dead` lists and `dead --again` queues anew.

    python examples/coordination/messages.py consume --name one
    python examples/coordination/messages.py produce --count 100 --project atlas --project borea
    python examples/coordination/messages.py produce --text poison
    python examples/coordination/messages.py dead --again
"""

import argparse
import asyncio
import json
import logging
import os
import signal
from pathlib import Path

import structlog

from shoal.coordination import NotOwner, ZkSession
from shoal.coordination.messages import (
    Consumer,
    ConsumerSettings,
    Producer,
    dead_letters,
    waiting,
)

TOPIC = "mail"


async def consume(session: ZkSession, arguments: argparse.Namespace) -> None:
    name = arguments.name
    settings = ConsumerSettings(ack_wait_s=arguments.ack_wait)
    async with Consumer(session, TOPIC, name, settings=settings) as consumer:
        # Finish the message at hand, then go.
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, consumer.stop)
        print(f"{name} waits for messages", flush=True)
        async for delivery in consumer:
            text = delivery.payload.decode()
            print(f"{name} has {delivery.id}, attempt {delivery.attempt}: {text}", flush=True)
            if "poison" in text:
                continue  # as if the work had failed: it is delivered again after the ack wait
            await asyncio.sleep(arguments.work)
            try:
                await delivery.ack()
                print(f"{name} is done with {delivery.id}", flush=True)
            except NotOwner as error:
                print(f"{name} was too late for {delivery.id}: {error}", flush=True)


async def produce(session: ZkSession, arguments: argparse.Namespace) -> None:
    async with Producer(session, TOPIC) as producer:
        for number in range(1, arguments.count + 1):
            for project in arguments.project:
                # The same id whenever this is repeated, so repeating it adds nothing.
                message_id = f"{project}-{arguments.text}-{number}"
                await producer.put(project, arguments.text.encode(), message_id=message_id)
    print(f"{await waiting(session, TOPIC)} messages wait", flush=True)


async def show_dead(session: ZkSession, arguments: argparse.Namespace) -> None:
    async with Producer(session, TOPIC) as producer:
        for letter in await dead_letters(session, TOPIC):
            text = letter.message.payload.decode()
            print(f"{letter.message.id}: {text}", flush=True)
            if arguments.again:
                await producer.put_again(letter)


async def main(arguments: argparse.Namespace) -> None:
    timeout_s = arguments.session_timeout
    async with ZkSession(arguments.zookeeper, session_timeout_s=timeout_s) as session:
        await arguments.run(session, arguments)


def default_zookeeper() -> str:
    """Return the address of the cluster that `shoal up` started here, or ZooKeeper's usual one."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (state := folder / ".shoal" / "cluster.json").exists():
            return f"{json.loads(state.read_text())['zookeeper']}/examples"
    return "127.0.0.1:2181/examples"


def parse() -> argparse.Namespace:
    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument("--zookeeper", default=default_zookeeper(), help="host:port/folder")
    everywhere.add_argument("--session-timeout", type=float, default=5, metavar="SECONDS")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    consuming = commands.add_parser("consume", parents=[everywhere], help="work on messages")
    consuming.add_argument("--name", default=f"consumer-{os.getpid()}")
    consuming.add_argument("--work", type=float, default=0.2, metavar="SECONDS")
    consuming.add_argument("--ack-wait", type=float, default=5, metavar="SECONDS")
    consuming.set_defaults(run=consume)
    producing = commands.add_parser("produce", parents=[everywhere], help="put messages")
    producing.add_argument("--project", action="append", required=False)
    producing.add_argument("--count", type=int, default=1, help="for each project")
    producing.add_argument("--text", default="hello")
    producing.set_defaults(run=produce)
    dead = commands.add_parser("dead", parents=[everywhere], help="list dead letters")
    dead.add_argument("--again", action="store_true", help="and have them delivered again")
    dead.set_defaults(run=show_dead)
    arguments = parser.parse_args()
    if arguments.run is produce and not arguments.project:
        arguments.project = ["atlas"]
    return arguments


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    asyncio.run(main(parse()))
