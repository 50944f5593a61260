"""Measure what it costs until a group is stable again.

One member joins, leaves or dies, or all members restart at once. Members are spread over sessions
and processes, as in a real deployment, and use a ZooKeeper of their own. Requests and bytes are
counted in the sessions of the members. Processor time is that of their processes.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.support.machine import CHECKOUT, machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port
from shoal.coordination import Group, GroupSettings, ZkSession, read_group, znodes
from shoal.coordination.assignors import Assignor, cooperative_sticky, sticky
from shoal.coordination.group import GroupMetadata, GroupState

PROTOCOLS: dict[str, Assignor] = {"eager": sticky, "cooperative": cooperative_sticky}
SETTINGS = GroupSettings(rebalance_timeout_s=600.0, initial_rebalance_delay_s=1.0)
SESSION_TIMEOUT_S = 20.0
LONGEST_LINE = 1 << 20  # bytes of one answer of a process
HEADER = "| Members | Partitions | Protocol | Change | Seconds | CPU s | CPU ms per member | Requests per session | Sent KB per session | Received KB per session | Generations |"  # noqa: E501


@dataclass(frozen=True, slots=True)
class Usage:
    """What the members' processes have used so far: processor seconds, and what they sent."""

    cpu_s: float
    requests: int
    sent: int
    received: int


class Counts:
    """Count the requests and bytes of sessions, those of heartbeats excepted."""

    def __init__(self) -> None:
        self.requests = self.sent = self.received = 0

    def watch(self, session: ZkSession) -> None:
        """Count what ``session`` sends and receives from now on."""
        client: Any = session._client
        submit, receive = client.submit, client._connection._received_now

        def counted(request: Any, body: bytes, *rest: Any) -> None:
            if type(request).__name__ != "Sync":
                self.requests += 1
                self.sent += len(body)
            submit(request, body, *rest)

        def received() -> bytes:
            chunk: bytes = receive()
            self.received += len(chunk)
            return chunk

        client.submit, client._connection._received_now = counted, received


# ---------------------------------------------------------------------- the members' process


async def serve(address: str, sessions: int) -> None:
    """Be some members, as the lines of standard input say: enter, restart, usage; end leaves."""
    counts = Counts()
    lines = asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    groups: list[Group] = []
    async with AsyncExitStack() as stack:
        open_sessions = []
        for _ in range(sessions):
            session = ZkSession(address, session_timeout_s=SESSION_TIMEOUT_S)
            open_sessions.append(await stack.enter_async_context(session))
            counts.watch(session)
        while line := await lines.readline():
            command = json.loads(line)
            if command["do"] in ("leave", "restart"):
                await asyncio.gather(*(group.__aexit__(None, None, None) for group in groups))
            if command["do"] in ("enter", "restart"):
                groups = [
                    Group(
                        open_sessions[number % sessions],
                        "g",
                        topics={"jobs": command["partitions"]},
                        assignors=[PROTOCOLS[command["protocol"]]],
                        settings=SETTINGS,
                    )
                    for number in range(command["members"])
                ]
                await asyncio.gather(*(group.__aenter__() for group in groups))
            usage = Usage(time.process_time(), counts.requests, counts.sent, counts.received)
            sys.stdout.write(
                json.dumps([usage.cpu_s, usage.requests, usage.sent, usage.received]) + "\n"
            )
            sys.stdout.flush()
        await asyncio.gather(*(group.__aexit__(None, None, None) for group in groups))


class MemberProcess:
    """A process with some members, from outside."""

    def __init__(self, process: asyncio.subprocess.Process, members: int) -> None:
        self.process, self.members = process, members

    async def do(self, command: str, **details: Any) -> Usage:
        """Return what the process has used once it has done ``command``."""
        assert self.process.stdin
        assert self.process.stdout
        line = json.dumps({"do": command, "members": self.members, **details})
        self.process.stdin.write(line.encode() + b"\n")
        answer = await self.process.stdout.readline()
        return Usage(*json.loads(answer))

    def kill(self) -> None:
        self.process.kill()


@asynccontextmanager
async def member_process(address: str, members: int, sessions: int) -> AsyncIterator[MemberProcess]:
    """A process for ``members`` members that share ``sessions`` sessions."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.rebalance", "--serve", address, str(sessions)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
        cwd=CHECKOUT,
    )
    try:
        yield MemberProcess(process, members)
    finally:
        assert process.stdin
        process.stdin.close()  # its sign to end
        await process.wait()


# ---------------------------------------------------------------------- the measurement


@dataclass(frozen=True, slots=True)
class Case:
    members: int
    partitions: int
    protocol: str


def is_settled(group: GroupMetadata, members: int, partitions: int) -> bool:
    """Whether ``members`` members have all partitions, and each of them knows its own."""
    assigned = sum(map(len, group.assignment.values()))
    return (
        group.state is GroupState.STABLE
        and len(group.members) == members
        and all(member.has_synced for member in group.members.values())
        and assigned == partitions
    )


class Observer:
    """Waits for a group, as another process sees it."""

    def __init__(self, session: ZkSession) -> None:
        self._session = session
        self._changed = asyncio.Event()

    async def settled(self, members: int, partitions: int, after: int = 0) -> GroupMetadata:
        """Return the group once it is settled in a later generation than ``after``."""
        while True:
            self._changed.clear()
            await self._session.get(znodes.group("g"), watch=lambda _: self._changed.set())
            group = await read_group(self._session, "g")
            if group.generation > after and is_settled(group, members, partitions):
                return group
            await self._changed.wait()

    async def gone(self, members: int) -> None:
        """Return once the sessions of all but ``members`` members have ended."""
        path = znodes.group_members("g")
        while True:
            self._changed.clear()
            found = await self._session.children(path, watch=lambda _: self._changed.set())
            if len(found.names) <= members:
                return
            await self._changed.wait()


async def measure(
    address: str, case: Case, sessions: int, processes: int, tell: Callable[[str], None]
) -> None:
    """Measure the changes of one case; ``tell`` gets a row of the table for each."""
    count = min(case.members, processes)
    details = {"partitions": case.partitions, "protocol": case.protocol}
    async with AsyncExitStack() as stack:
        session = ZkSession(address, session_timeout_s=SESSION_TIMEOUT_S, name="observer")
        observer = Observer(await stack.enter_async_context(session))
        per_process = max(1, min(sessions, case.members) // count)
        all_sessions = per_process * count
        crowd = [
            await stack.enter_async_context(
                member_process(address, len(range(n, case.members, count)), per_process)
            )
            for n in range(count)
        ]

        async def used() -> list[Usage]:
            return [await each.do("usage") for each in crowd]

        async def row(change: str, began: float, before: list[Usage], first: int, now: int) -> None:
            took_s = time.monotonic() - began
            pairs = list(zip(before, await used(), strict=True))
            cpu_s = sum(b.cpu_s - a.cpu_s for a, b in pairs)
            requests = sum(b.requests - a.requests for a, b in pairs)
            sent = sum(b.sent - a.sent for a, b in pairs)
            received = sum(b.received - a.received for a, b in pairs)
            tell(
                f"| {case.members:,} | {case.partitions:,} | {case.protocol} | {change} "
                f"| {took_s:.2f} | {cpu_s:.2f} | {cpu_s / case.members * 1000:.1f} "
                f"| {requests / all_sessions:.0f} | {sent / all_sessions / 1000:.0f} "
                f"| {received / all_sessions / 1000:.0f} | {now - first} |"
            )

        await asyncio.gather(*(each.do("enter", **details) for each in crowd))
        group = await observer.settled(case.members, case.partitions)
        for last in ("leaves", "dies"):
            async with member_process(address, 1, 1) as one_more:
                await one_more.do("usage")
                before, began, first = await used(), time.monotonic(), group.generation
                await one_more.do("enter", **details)
                group = await observer.settled(case.members + 1, case.partitions, first)
                if last == "leaves":
                    await row("one joins", began, before, first, group.generation)
                before, began, first = await used(), time.monotonic(), group.generation
                if last == "leaves":
                    await one_more.do("leave")
                else:
                    one_more.kill()
                    await observer.gone(case.members)
                    began = time.monotonic()
                group = await observer.settled(case.members, case.partitions, first)
                await row(f"one {last}", began, before, first, group.generation)
        before, began, first = await used(), time.monotonic(), group.generation
        await asyncio.gather(*(each.do("restart", **details) for each in crowd))
        group = await observer.settled(case.members, case.partitions, first)
        await row("all restart", began, before, first, group.generation)


async def measure_all(options: argparse.Namespace, tell: Callable[[str], None]) -> None:
    tell(HEADER)
    tell("| ---: | ---: | --- | --- |" + " ---: |" * 7)
    for members in options.members:
        for partitions in options.partitions:
            for protocol in options.protocols:
                with (
                    tempfile.TemporaryDirectory() as folder,
                    ZooKeeperServer(Path(folder), free_port(), find_java()) as server,
                ):
                    case = Case(members, partitions, protocol)
                    await measure(server.address, case, options.sessions, options.processes, tell)
    tell(f"\n{options.sessions} sessions in {options.processes} processes; {machine()}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.rebalance", description=__doc__)
    parser.add_argument("--members", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--partitions", type=int, nargs="+", default=[128, 1000, 10_000])
    parser.add_argument("--protocols", choices=list(PROTOCOLS), nargs="+", default=list(PROTOCOLS))
    parser.add_argument("--sessions", type=int, default=10, help="that the members share")
    parser.add_argument("--processes", type=int, default=5, help="that hold the sessions")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)  # a process with members
    options = parser.parse_args(arguments)
    if options.serve:
        address, sessions = options.serve
        asyncio.run(serve(address, int(sessions)))
        return

    def tell(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    asyncio.run(measure_all(options, tell))


if __name__ == "__main__":
    main()
