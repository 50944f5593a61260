"""Programs that listen on a port of the loopback."""

import socket
import subprocess
import time

from tests.support.waiting import DEADLINE_S


def wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when somebody listens there. Fails if the process ends before."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert process.poll() is None, f"{process.args!r} did not start"
            assert time.monotonic() < deadline
            time.sleep(0.05)
