"""A process without memory ends with a status of its own, wherever the MemoryError is raised."""

import subprocess
import sys

import pytest

from shoal.runtime.limits.memory_shortage import EXIT_NO_MEMORY
from tests.support.waiting import DEADLINE_S

_PROGRAM = """
import asyncio, resource, socket, sys, threading
import uvloop
from shoal.coordination import background
from shoal.runtime.limits.memory_shortage import MemoryShortage, report

def fail(*_):
    raise {error}

async def fail_later():
    fail()

def fill():
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    kept = []
    while True:
        kept.append(bytearray(4096))

def caught():
    try:
        fail()
    except Exception as error:
        report(error)

async def work():
    loop = asyncio.get_running_loop()
    {work}
    await asyncio.sleep(0.3)

with (
    asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    MemoryShortage().watching(runner.get_loop()),
):
    runner.run(work())
sys.exit(5)
"""
_WAYS = {
    "main task": "fail()",
    "callback": "loop.call_soon(fail)",
    "memory of the process": "loop.call_soon(fill)",
    "task that no code awaits": "asyncio.create_task(fail_later())",
    "background loop": "task = background.start(fail_later(), 'a loop')",
    "background loop that begins again": "task = background.keep_running(fail_later, 'a loop')",
    "thread": "threading.Thread(target=fail).start()",
    "code that cannot raise": "type('Gone', (), {'__del__': fail})()",
    "handler that catches every error": "caught()",
    "new connection": "server = await loop.create_server(fail, '127.0.0.1', 0); "
    "client = socket.create_connection(server.sockets[0].getsockname())",
}


def ended(work: str, error: str) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.replace("{work}", work).replace("{error}", error)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


@pytest.mark.parametrize("way", _WAYS)
def test_process_without_memory_ends_with_one_line(way: str) -> None:
    found = ended(_WAYS[way], "MemoryError")
    assert found.returncode == EXIT_NO_MEMORY, found.stderr
    (line,) = (found.stdout + found.stderr).splitlines()
    assert "out of memory: this process ends" in line


def test_group_that_has_a_memory_error_is_one() -> None:
    error = "ExceptionGroup('of tasks', [OSError(), ExceptionGroup('', [MemoryError()])])"
    assert ended("fail()", error).returncode == EXIT_NO_MEMORY


def test_other_errors_end_nothing() -> None:
    ways = [
        way for name, way in _WAYS.items() if name not in ("main task", "memory of the process")
    ]
    assert ended("; ".join(ways), "OSError").returncode == 5
