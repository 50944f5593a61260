"""Ports for servers that come back on the same one after they were killed."""

import random
import socket
from pathlib import Path

from shoal.client.local.zookeeper import HOST

_FIRST = 10_000
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given: set[int] = set()


def lasting_port() -> int:
    """Return a free port that no outgoing connection can take while its server is down.

    Those take theirs from the ephemeral range; ours lie below it.
    """
    last = int(_EPHEMERAL.read_text().split()[0]) - 1
    dice = random.SystemRandom()  # not the plan's: two runs at once must not agree
    while True:
        port = dice.randint(_FIRST, last)
        if port in _given:
            continue
        try:
            socket.create_server((HOST, port)).close()
        except OSError:
            continue
        _given.add(port)
        return port
