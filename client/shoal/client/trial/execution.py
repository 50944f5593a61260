"""One task, run as a worker would run it, but without a cluster."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from shoal.client.trial.inputs import NotForTrial, TaskInputs
from shoal.core.definition.parameters import RESERVED_PATTERN
from shoal.core.definition.resources import RESOURCES
from shoal.core.errors import ShoalError
from shoal.core.task_types import Exit, SparkConnect
from shoal.core.timing import poll_interval
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import StorageLimits
from shoal.worker.execution.context import AttemptContext, prepare
from shoal.worker.home.upload import Leaving, opened
from shoal.worker.processes.environment import NOT_REACHED
from shoal.worker.supervisor.shim.outputs import BadOutput, collect

KILL_GRACE_S = 10.0
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_CHUNK = 1 << 16  # bytes of output passed on at once


@dataclass(frozen=True)
class Tried:
    """How the task ended. ``reason`` is empty if it succeeded.

    ``again_s``: it was a look that did not find what the task waits for; the next one would be in
    so many seconds.
    """

    exit_code: int
    reason: str = ""
    again_s: float | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    files: Sequence["LeftFile"] = ()  # what would become resources


@dataclass(frozen=True)
class LeftFile:
    """A file that the task has left, and the resource that it would become. ``size``: bytes."""

    file: str
    path: str
    size: int


async def try_task(
    inputs: TaskInputs,
    on_output: Callable[[bytes], None],
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Tried:
    """Run the task in a folder of its own, which is removed afterwards.

    ``on_output`` gets the output of the task, secrets masked. ``settings`` are those of a worker
    for task types. Cancelling ends the processes of the task.
    """
    mask = inputs.masker.mask
    with tempfile.TemporaryDirectory(prefix="shoal-test-") as folder:
        place = Path(folder) / "task"
        try:
            prepared = prepare(inputs.payload, place, inputs.variables, (), inputs.worker_group)
        except ShoalError as error:
            return Tried(1, str(error))
        for path, source in inputs.files.items():
            target = prepared.work_dir / RESOURCES / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            target.chmod(0o500)

        def emit(part: bytes) -> None:
            on_output(mask(part.decode("utf-8", "replace")).encode() if inputs.masked else part)

        async def run(argv: Sequence[str], env: Mapping[str, str], stdin: str | None) -> Exit:
            return await _run_process(argv, env, stdin, prepared.work_dir, emit)

        task_type = inputs.kind()
        timeout_s = inputs.payload.timeout_s or None
        try:
            async with asyncio.timeout(timeout_s):
                context = AttemptContext(inputs.payload, prepared, run, _NoSpark(), settings)
                ended = await task_type.run(context, inputs.params)
        except TimeoutError:
            return Tried(1, f"timed out after {timeout_s:g} s")
        except ShoalError as error:
            return Tried(1, str(error))

        if ended.signal is not None:
            return Tried(128 + ended.signal, f"ended by signal {ended.signal}")
        setup = prepared.setup.failure() if prepared.setup is not None else None
        if setup and not ended.code:
            return Tried(1, f"{setup}: {NOT_REACHED}")
        if ended.code:
            reason = setup or task_type.failure(prepared.work_dir) or f"exit code {ended.code}"
            again_s = None
            if ended.code == task_type.not_yet_exit_code:
                again_s = poll_interval.bounded(task_type.again_s(prepared.work_dir) or 0.0)
            return Tried(ended.code, mask(reason), again_s)
        try:
            found = collect(str(prepared.output_file), None, RESERVED_PATTERN)
        except (BadOutput, OSError) as error:
            return Tried(1, f"its outputs cannot be used: {error}")
        left = []
        try:
            for file, path in inputs.publications:
                # Only here: a trial that publishes nothing does not read the cluster's settings.
                largest = StorageLimits.of(ClusterSettings()).file
                # As a worker opens what it hands over.
                with opened(prepared.work_dir, Leaving(file, path, ""), largest) as stream:
                    left.append(LeftFile(file, path, os.fstat(stream.fileno()).st_size))
        except ShoalError as error:
            return Tried(1, str(error))
        return Tried(
            0, outputs={name: mask(text) for name, text in found.items()}, files=tuple(left)
        )


class _NoSpark:
    """See SparkAccess: servers are kept by workers."""

    server: SparkConnect | None = None

    async def connect(self) -> SparkConnect:
        raise NotForTrial(
            "the task asks for the Spark Connect server that a worker keeps, and `shoal test` has "
            "none: give the data source the host of a server, or use `shoal run` on a cluster"
        )


async def _run_process(
    argv: Sequence[str],
    env: Mapping[str, str],
    stdin: str | None,
    folder: Path,
    on_output: Callable[[bytes], None],
) -> Exit:
    """Run a program. Cancelled, it ends what runs in the program's session."""
    start = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            env=dict(env),
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    )
    try:
        # A start that is cancelled kills the program alone, and waits for the end of its children.
        process = await asyncio.shield(start)
    except OSError as error:
        raise NotForTrial(f"cannot run {argv[0]!r}: {error.strerror}") from error
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(await start)
        raise
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write((stdin or "").encode())
            await process.stdin.drain()
        process.stdin.close()
        while part := await process.stdout.read(_CHUNK):
            on_output(part)
        code = await process.wait()
    except BaseException:
        await _end(process)
        raise
    _signal(process, signal.SIGKILL)  # what it has left behind in its session
    return Exit(None, -code) if code < 0 else Exit(code)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the session of a program, by SIGKILL if SIGTERM is not enough."""
    try:
        _signal(process, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_GRACE_S):
                await process.wait()
    finally:
        _signal(process, signal.SIGKILL)


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
