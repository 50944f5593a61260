"""Many claimers in a few processes."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench.support.machine import CHECKOUT

LONGEST_LINE = 1 << 24  # bytes of one answer


@dataclass(frozen=True)
class Crowd:
    """``claimers`` claimers of one queue, each with a session of its own."""

    claimers: int
    processes: list[asyncio.subprocess.Process]

    async def claim(self, claims: int, size: int) -> list[dict[str, Any]]:
        """Have each claimer make ``claims`` claims; return what each saw, see claimer.py."""
        command = json.dumps({"claims": claims, "size": size}).encode() + b"\n"
        for process in self.processes:
            assert process.stdin
            process.stdin.write(command)
        answers = [json.loads(await _line(process)) for process in self.processes]
        return [answer for answers_of_one in answers for answer in answers_of_one]


@asynccontextmanager
async def crowd(address: str, claimers: int, processes: int) -> AsyncIterator[Crowd]:
    """Start ``claimers`` claimers, spread over at most ``processes`` processes."""
    count = min(claimers, processes)
    started: list[asyncio.subprocess.Process] = []
    try:
        for number in range(count):
            names = [f"claimer-{n}" for n in range(number, claimers, count)]
            started.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "bench.queue.claimer", address, *names),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=LONGEST_LINE,
                    cwd=CHECKOUT,
                )
            )
        for process in started:
            await _line(process)
        yield Crowd(claimers, started)
    finally:
        for process in started:
            assert process.stdin
            process.stdin.close()  # its sign to end
        await asyncio.gather(*(process.wait() for process in started))


async def _line(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout
    line = await process.stdout.readline()
    if not line:
        raise SystemExit("a claimer ended before its time; its error is above")
    return line
