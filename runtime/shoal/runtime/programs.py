"""Run a program of ours, or of the administrator's, to its end.

asyncio's own processes end only when their pipes are closed as well. So a caller that is cancelled
while one starts would wait for ever, as would one whose program leaves something that keeps a pipe
open. Here input and output are files, and the end of the process alone counts.
"""

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_MOST_OUTPUT = 64 * 1024  # bytes that are read of what a program says


@dataclass(frozen=True)
class ProgramResult:
    """How a program has ended: its exit status, negative for a signal, and what it has said.

    ``output`` and ``errors`` are the first 64 KiB of each.
    """

    code: int
    output: str
    errors: str


async def run_program(
    command: Sequence[str | Path],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> ProgramResult:
    """Run a program in a session of its own.

    ``env``: None is that of this process. If this is cancelled, the program is killed, with all
    that has stayed in its session. Raises OSError if it cannot be started, ValueError for a NUL.
    """
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(stdin)
        given.seek(0)
        process = _started(command, (given, output, errors), env, cwd)
        try:
            await _end_of(process.pid)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            process.wait()  # it has ended, or cannot refuse to
        for file in (output, errors):
            file.seek(0)
        said = [file.read(_MOST_OUTPUT).decode("utf-8", "replace") for file in (output, errors)]
        return ProgramResult(process.returncode, *said)


def _started(
    command: Sequence[str | Path],
    files: tuple[IO[bytes], IO[bytes], IO[bytes]],
    env: Mapping[str, str] | None,
    cwd: Path | None,
) -> subprocess.Popen[bytes]:
    given, output, errors = files
    return subprocess.Popen(
        command,
        stdin=given,
        stdout=output,
        stderr=errors,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )


async def _end_of(pid: int) -> None:
    """Return when a child has ended; it is still to be waited for."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    fd = os.pidfd_open(pid)
    try:
        loop.add_reader(fd, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
