"""The work of an SSH task, in the process of its attempt.

What an earlier attempt has left at the host is ended before the script starts, and everything that
the script has started when it ends, whatever way it does. A connection that is lost fails the
attempt; the script is ended over a new one.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from shoal.worker.processes.variables import secret_variables
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.remote_environment import variables
from shoal.worker.types.child.work import Work
from shoal.worker.types.program import CannotRun, program_text
from shoal.worker.types.ssh.host import ConnectionLost, Host, described, signed_in
from shoal.worker.types.ssh.kind import SshParams
from shoal.worker.types.ssh.remote import MOST_OUTPUT, RemoteScript


async def run(work: Work[SshParams]) -> None:
    """Run the task. Raises WorkFailed, CancelledError."""
    source = work.data_source(work.params.data_source)
    is_signed_in = False
    try:
        given = {**variables(work), **secret_variables(work.secrets)}
        script = RemoteScript(_program(work), work.params.interpreter, given)
        async with signed_in(source) as host:
            is_signed_in = True
            await host.end(work.tag)  # what an earlier attempt has left
            work.log(f"shoal: {described(source)}: {host.version}")
            await _run(work, host, script)
    except ConnectionLost as lost:
        # Settling is tried again later if this fails.
        work.log(f"shoal: {lost}; ending the script over a new connection")
        with suppress(WorkFailed):
            await settle(work)
        raise
    finally:
        if not is_signed_in:
            work.settled()  # nothing of this attempt has begun


async def settle(work: Work[SshParams]) -> None:
    """End what the attempt has left running at the host. Raises WorkFailed."""
    async with signed_in(work.data_source(work.params.data_source)) as host:
        await host.end(work.tag)
    work.settled()


def _program(work: Work[SshParams]) -> str:
    try:
        return program_text(work.folder, work.params.script, work.params.file)
    except CannotRun as error:
        raise WorkFailed(str(error), permanent=True) from None


async def _run(work: Work[SshParams], host: Host, script: RemoteScript) -> None:
    try:
        code, outputs = await host.run(work.tag, script, work.log_bytes)
    except ConnectionLost:
        raise  # nothing can be ended over this connection
    except (asyncio.CancelledError, WorkFailed):
        await host.end(work.tag)
        work.settled()
        raise
    await host.end(work.tag)  # what it has left in the background
    work.settled()
    if len(outputs) > MOST_OUTPUT:
        text = f"the script has written more than {MOST_OUTPUT:,} bytes of outputs"
        raise WorkFailed(text, permanent=True)
    if outputs and (file := os.environ.get("SHOAL_OUTPUT")):
        await asyncio.to_thread(Path(file).write_bytes, outputs)
    if code != 0:
        raise WorkFailed("", exit_code=code)  # the script has said why, if anybody has
