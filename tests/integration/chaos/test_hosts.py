"""Hosts reach one another; packets vanish one way, and connections live on."""

import os
import subprocess
import sys

import pytest

# In a process of its own: it takes a network of its own, and must not take ours.
_PROGRAM = """
import socket, subprocess, sys
from tests.chaos.cluster.hosts import Hosts
from tests.chaos.cluster.sandbox import Refused, make_network_private

# Says each line back; "quick" is how long a client waits before it gives up.
SERVER = '''
import socket, sys
listening = socket.create_server((sys.argv[1], 7000))
print("ready", flush=True)
while True:
    talking, _ = listening.accept()
    for line in talking.makefile("rb"):
        talking.sendall(line)
'''
try:
    make_network_private()
except Refused as why:
    sys.exit(f"REFUSED {why}")
with Hosts("") as hosts:
    if hosts.refused:
        sys.exit(f"REFUSED {hosts.refused}")
    server = hosts.add(1, 1)
    command = server.command([sys.executable, "-c", SERVER, server.address])
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    running.stdout.readline()

    def connect():
        return socket.create_connection((server.address, 7000), timeout=60)

    def say(talking, patience_s):
        talking.settimeout(patience_s)
        talking.sendall(b"x\\n")
        try:
            return talking.recv(100)
        except TimeoutError:
            return None

    open_one = connect()
    assert say(open_one, 60) == b"x\\n"
    # Requests vanish, of old connections and new ones, and come through when it is over.
    cut = server.lose("ct direction original")
    assert say(open_one, 1) is None
    try:
        socket.create_connection((server.address, 7000), timeout=1)
        raise AssertionError("connected")
    except TimeoutError:
        pass
    assert cut.packets > 1
    cut.heal()
    open_one.settimeout(60)
    assert open_one.recv(100) == b"x\\n"
    # Answers vanish, requests arrive.
    heard = server.count(f"ip saddr {server.centre}")
    cut = hosts.centre.lose(f"ip saddr {server.address}")
    assert say(open_one, 1) is None
    assert heard.packets and cut.packets
    cut.heal(), heard.heal()
    open_one.settimeout(60)
    assert open_one.recv(100) == b"x\\n"
    # Refused: everybody is told at once.
    cut = server.refuse("meta l4proto tcp ct direction original")
    try:
        connect()
        raise AssertionError("connected")
    except ConnectionRefusedError:
        pass
    cut.heal()
    running.kill()
print("well")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes networks")
def test_packets_vanish_one_way_and_connections_live_on() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    if done.stderr.startswith("REFUSED"):
        pytest.skip(done.stderr)
    assert done.stdout == "well\n", done.stderr
