"""A real OpenSSH server on the loopback, for tests that sign in as the user who runs them."""

import getpass
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from shoal.client.local.zookeeper import free_port
from shoal.core.data_sources import DataSource
from tests.support.servers.listening import wait_until_listening

SSHD = Path("/usr/sbin/sshd")

_CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
LogLevel ERROR
"""


@dataclass(frozen=True)
class Served:
    """A server that takes one key. ``source`` signs in with it."""

    source: DataSource
    process: subprocess.Popen[bytes]


@contextmanager
def served(folder: Path, settings: str = "") -> Iterator[Served]:
    """Run a server whose files are in ``folder``. ``settings``: more lines of its sshd_config."""
    port = free_port()
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    own_key = asyncssh.generate_private_key("ssh-ed25519")
    _write(folder / "host_key", host_key.export_private_key())
    _write(folder / "authorized_keys", own_key.export_public_key())
    _write(folder / "config", (_CONFIG.format(port=port, folder=folder) + settings).encode())
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    command = [str(SSHD), "-D", "-e", "-f", str(folder / "config")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        wait_until_listening(port, process)
        shown = " ".join(host_key.export_public_key().decode().split()[:2])
        source = DataSource(
            "farm",
            "ssh",
            host="127.0.0.1",
            port=port,
            user=getpass.getuser(),
            password=own_key.export_private_key().decode(),
            options={"host_key": shown, "connect_timeout": 30},
        )
        yield Served(source, process)
    finally:
        process.terminate()
        process.wait()


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o600)
