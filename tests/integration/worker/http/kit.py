"""Run the work of HTTP tasks without an agent: in this process, or in that of an attempt."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.worker.types.child.kind import argv
from shoal.worker.types.child.outcome import WorkFailed, read_reason
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.child.work import Work
from shoal.worker.types.http.kind import Http, HttpParams
from shoal.worker.types.http.work import run as work_function
from tests.support.servers.http_server import Handler, Received
from tests.support.waiting import DEADLINE_S

LOOPBACK = {"http_allow": "127.0.0.0/8 ::1"}
TAG = "shoal-0123456789abcdef01234567"
# The same as the process of an attempt; says at its end how much memory it needed, in KiB.
MEASURED = """\
import re, sys
from shoal.worker.types.child.__main__ import main
code = main()
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
sys.stdout.flush()
sys.exit(code)
"""


@dataclass(frozen=True)
class Done:
    """How it ended: exit code, log, reason of a failure, outputs."""

    code: int
    log: str
    reason: str | None
    outputs: Mapping[str, Any]
    stderr: str


class Heard(Work[HttpParams]):
    """Work whose log is kept."""

    def __init__(self, request: WorkRequest, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(request, HttpParams.model_validate(request.params), folder)
        self._outputs = str(folder / "output")
        self.lines: list[str] = []

    def log(self, text: str) -> None:
        self.lines += text.splitlines()


def request_for(
    params: Mapping[str, Any],
    settings: Mapping[str, str] = LOOPBACK,
    secrets: Mapping[str, str] | None = None,
) -> WorkRequest:
    """Return what an agent tells the process of an attempt."""
    return WorkRequest(
        work=Http.work,
        task_type=f"{Http.__module__}:{Http.__qualname__}",
        params=HttpParams.model_validate(params).model_dump(mode="json"),
        parameters={},
        task_instance_id=1,
        attempt=1,
        tag=TAG,
        secrets=secrets or {},
        settings=settings,
    )


async def run(folder: Path, params: Mapping[str, Any], **told: Any) -> Done:
    """Do the work here, to its end."""
    work = Heard(request_for(params, **told), folder)
    code, reason = 0, None
    async with asyncio.timeout(DEADLINE_S):
        try:
            await work_function(work)
        except WorkFailed as failed:
            code, reason = failed.exit_code, str(failed)
    return Done(code, "\n".join(work.lines), reason, _outputs(folder), "")


class Attempt:
    """The process of one attempt, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: asyncio.subprocess.Process

    async def start(
        self,
        params: Mapping[str, Any],
        *,
        env: Mapping[str, str] | None = None,
        command: list[str] | None = None,
        **told: Any,
    ) -> None:
        """Start it, and give it the request."""
        self.folder.mkdir(parents=True, exist_ok=True)
        request = request_for(params, **told)
        self.process = await asyncio.create_subprocess_exec(
            *(command or argv()),
            cwd=self.folder,
            env={**os.environ, "SHOAL_OUTPUT": str(self.folder / "output"), **(env or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(request.to_json().encode())
        self.process.stdin.close()

    async def ended(self) -> Done:
        """Return how it ended."""
        async with asyncio.timeout(DEADLINE_S):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return Done(
            self.process.returncode,
            out.decode(),
            read_reason(self.folder),
            _outputs(self.folder),
            err.decode(),
        )


def _outputs(folder: Path) -> dict[str, Any]:
    file = folder / "output"
    found: dict[str, Any] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        found |= json.loads(line)
    return found


async def run_process(folder: Path, params: Mapping[str, Any], **told: Any) -> Done:
    """Do the work in the process of an attempt, to its end."""
    attempt = Attempt(folder)
    await attempt.start(params, **told)
    done = await attempt.ended()
    assert "Traceback" not in done.stderr, done.stderr
    return done


async def measured(folder: Path, params: Mapping[str, Any]) -> tuple[Done, int]:
    """Run it to its end; return the most memory that it had, too, in bytes."""
    attempt = Attempt(folder)
    await attempt.start(params, command=[sys.executable, "-c", MEASURED])
    done = await attempt.ended()
    return done, 1024 * int(done.stderr.split()[-1])


async def never(received: Received, writer: asyncio.StreamWriter) -> None:
    """Take the request and say nothing."""
    await asyncio.Event().wait()


def dripping(head: bytes) -> Handler:
    """Return a handler that sends a byte every now and then after ``head``, without end."""

    async def drip(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.1)

    return drip
