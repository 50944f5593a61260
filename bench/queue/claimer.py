"""Claimers in a process of their own: ``python claimer.py ADDRESS NAME...``, one session each.

Speaks JSON lines: reads ``{"claims": n, "size": k}`` from its standard input, has every claimer
make ``n`` claims of up to ``k`` entries, and answers with a list of what each of them saw:
``began_ns`` and ``ended_ns`` (CLOCK_MONOTONIC, the same for all processes of the machine),
``latencies_ns`` of its calls, the ``tasks`` that it claimed, and ``lost_races``, the multis that
came too late. Claims are released before the answer. Ends when its input does.
"""

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from typing import Any

from bench.queue.workload import GROUP
from bench.support.quiet import log_warnings_to_stderr
from shoal.coordination import TaskClaim, TaskQueue, ZkSession


async def claim(
    session: ZkSession, queue: TaskQueue, name: str, claims: int, size: int
) -> tuple[dict[str, Any], list[TaskClaim]]:
    """Claim ``claims`` times in a row; return what is to be told, and the claims."""
    latencies: list[int] = []
    claimed: list[TaskClaim] = []
    lost_before, began = queue.lost_races, time.monotonic_ns()
    for _ in range(claims):
        sent = time.monotonic_ns()
        # A machine that stands still for long breaks connections; workers try again, too.
        got = await session.retry(lambda: queue.claim(GROUP, size, name))
        latencies.append(time.monotonic_ns() - sent)
        claimed += got
    answer = {
        "began_ns": began,
        "ended_ns": time.monotonic_ns(),
        "latencies_ns": latencies,
        "tasks": [claim.task_instance_id for claim in claimed],
        "lost_races": queue.lost_races - lost_before,
    }
    return answer, claimed


def say(line: str) -> None:
    """Write a line to the process that started us."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def serve(address: str, names: list[str]) -> None:
    """Answer commands until there are no more."""
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(ZkSession(address, session_timeout_s=30, name=name))
            for name in names
        ]
        queues = [TaskQueue(session) for session in sessions]
        claimers = list(zip(sessions, queues, names, strict=True))
        say("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            answers = await asyncio.gather(
                *(claim(*claimer, command["claims"], command["size"]) for claimer in claimers)
            )
            for queue, (_, claimed) in zip(queues, answers, strict=True):
                await queue.release(claimed, ended=True)
            say(json.dumps([answer for answer, _ in answers]))


if __name__ == "__main__":
    log_warnings_to_stderr()
    asyncio.run(serve(sys.argv[1], sys.argv[2:]))
