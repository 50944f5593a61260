"""``shoal up --detach`` and ``shoal down``: a supervisor without a terminal."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from shoal.client.errors import AlreadyRunning, ServerFailed
from shoal.client.libraries import httpx
from shoal.client.local.cluster import READY_TIMEOUT_S, STOP_TIMEOUT_S
from shoal.client.local.data_folder import (
    ClusterState,
    holder_of,
    holds_lock,
    is_running,
    make_data_folder,
    running_state,
    unusable,
)

_POLL_S = 0.1
_TAIL_LINES = 20


def start_detached(data: Path, arguments: Sequence[str]) -> ClusterState:
    """Start ``shoal up`` with ``arguments`` in the background; return when it is ready.

    Raises AlreadyRunning, DataFolderUnusable, or ServerFailed with the end of its log.
    """
    if is_running(data):
        state = running_state(data)
        raise AlreadyRunning(data, state.api if state else None, state.pid if state else None)
    log = data / "logs" / "cluster.log"
    make_data_folder(data)
    command = [sys.executable, "-m", "shoal.client.cli", "up", "--data", str(data), *arguments]
    try:
        log.parent.mkdir(exist_ok=True, mode=0o700)
        output = log.open("ab")
    except OSError as error:
        raise unusable(data, error) from error
    with output:
        log_start = output.tell()
        supervisor = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + READY_TIMEOUT_S + 30
    while time.monotonic() < deadline:
        if supervisor.poll() is not None:
            raise ServerFailed(
                "shoal up", f"ended with status {supervisor.returncode}", log, _tail(log, log_start)
            )
        state = running_state(data)
        if state is not None and state.pid == supervisor.pid and _is_ready(data, state):
            return state
        time.sleep(_POLL_S)  # there is no event to wait for across processes
    supervisor.terminate()
    raise ServerFailed("shoal up", "was not ready in time", log, _tail(log, log_start))


def stop_detached(data: Path, timeout_s: float = 3 * STOP_TIMEOUT_S) -> bool:
    """Stop the supervisor of ``data`` and wait for its end. False: none was running.

    Raises ServerFailed if it cannot be stopped from here.
    """
    holder, state = holder_of(data), running_state(data)
    if holder is None:
        return False
    pid = holder.pid or (state.pid if state else 0)
    if not pid or not holds_lock(pid, data):
        raise ServerFailed(
            "shoal up",
            f"holds {data}, but is not a process of this machine or container; stop it there",
            data / "logs" / "cluster.log",
            [],
        )
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while is_running(data):
        if time.monotonic() > deadline:
            raise ServerFailed(
                "shoal up",
                f"(process {pid}) does not stop",
                data / "logs" / "cluster.log",
                [],
            )
        time.sleep(_POLL_S)
    return True


def _is_ready(data: Path, state: ClusterState) -> bool:
    try:
        token = (data / "token").read_text().strip()
        health = httpx.get(
            f"{state.api}/api/v1/health",
            timeout=2.0,
            trust_env=False,
            headers={"Authorization": f"Bearer {token}"},
        ).json()
    except (OSError, httpx.TransportError, ValueError):
        return False
    return bool(
        health.get("masters", 0) >= state.masters and health.get("workers", 0) >= state.workers
    )


def _tail(log: Path, start: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(start)
        return file.read().decode("utf-8", "replace").splitlines()[-_TAIL_LINES:]
