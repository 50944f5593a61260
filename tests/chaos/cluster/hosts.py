"""Hosts: each has a network namespace, an address and a packet filter of its own, on one bridge.

The bridge lies in the suite's own namespace, which is the host of ZooKeeper, the database and the
API. Packets that a ``Cut`` matches vanish where they arrive: the sender gets no answer,
and connections that are open stay so. Everything goes with the suite's last process.
"""

import itertools
import json
import os
import shutil
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from shoal.client.local.zookeeper import HOST
from tests.chaos.cluster.sandbox import Refused, run, unshare_network

_BRIDGE = "chaos"
_CENTRE = "10.77.0.1"
_TABLE = "inet chaos"
# Connections are followed from the beginning: later nobody could tell which side opened them.
_RULES = f"""
table {_TABLE} {{
    chain followed {{
        type filter hook input priority -10
        ct state invalid counter
    }}
}}
"""
_numbers = itertools.count(1)


class Cut:
    """Packets that vanish on their way into one host, from now on until ``heal``."""

    def __init__(self, host: "Host", rules: tuple[str, ...], verdict: str) -> None:
        self._host, self._chain = host, f"cut{next(_numbers)}"
        self._packets: int | None = None  # once it is healed
        lines = "\n".join(f"{rule} counter {verdict}" for rule in rules)
        hook = "type filter hook input priority 0"
        host.filter(f"table {_TABLE} {{\nchain {self._chain} {{\n{hook}\n{lines}\n}}\n}}\n")

    @property
    def packets(self) -> int:
        """How many it has matched."""
        if self._packets is not None:
            return self._packets
        rules = self._host.rules(self._chain)
        counters = [part["counter"] for rule in rules for part in rule if "counter" in part]
        return sum(counter["packets"] for counter in counters)

    def heal(self) -> None:
        """Let everything through. Repeatable."""
        if self._packets is None:
            self._packets = self.packets
            chain = f"chain {_TABLE} {self._chain}"
            self._host.filter(f"flush {chain}\ndelete {chain}\n")


class Host:
    """One host. ``centre``: how it reaches the suite's servers."""

    def __init__(self, address: str, centre: str, namespace: int | None = None) -> None:
        """``namespace``: descriptor of its own one; None for the suite's."""
        self.address, self.centre = address, centre
        self._namespace = namespace

    def command(self, command: list[str]) -> list[str]:
        """Return ``command`` as it runs on this host. The process stays the one that is started."""
        if self._namespace is None:
            return command
        program = shutil.which("nsenter") or "nsenter"  # an absolute path, if there is any
        return [program, f"--net=/proc/{os.getpid()}/fd/{self._namespace}", "--", *command]

    def lose(self, *rules: str) -> Cut:
        """Let incoming packets vanish that match one of ``rules``, in the words of nft."""
        return Cut(self, rules, "drop")

    def refuse(self, *rules: str) -> Cut:
        """Answer incoming packets of TCP that match with a reset, as if nobody listened."""
        return Cut(self, rules, "reject with tcp reset")

    def count(self, *rules: str) -> Cut:
        """Only count incoming packets that match: nothing is cut."""
        return Cut(self, rules, "accept")

    def filter(self, script: str) -> None:
        """Give a script to the packet filter. Raises Refused."""
        run(*self.command(["nft", "-f", "-"]), given=script)

    def rules(self, chain: str) -> list[list[dict[str, Any]]]:
        """Return the rules of a chain, each with its parts. Raises Refused."""
        command = ["nft", "-j", "list", "chain", *_TABLE.split(), chain]
        listed = json.loads(run(*self.command(command)))["nftables"]
        return [one["rule"]["expr"] for one in listed if "rule" in one]

    def close(self) -> None:
        if self._namespace is not None:
            os.close(self._namespace)
            self._namespace = None


class Hosts:
    """All hosts; a context manager. Where there can be none, all have loopback addresses.

    ``refused`` says why, "" if hosts are hosts. Call everything in the main thread.
    """

    def __init__(self, refused: str) -> None:
        self.refused = refused
        self.centre = Host(HOST, HOST)
        self._others: list[Host] = []

    def __enter__(self) -> Self:
        if not self.refused:
            try:
                self._build()
            except Refused as error:
                self.close()
                self.refused = f"no hosts of our own: {error}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.refused:
            self.close()

    def close(self) -> None:
        """Remove everything; the namespaces go with their last processes."""
        for host in self._others:
            host.close()
        with suppress(Refused):
            run("ip", "link", "delete", _BRIDGE)
        with suppress(Refused):
            run("nft", "delete", "table", *_TABLE.split())

    def add(self, network: int, number: int) -> Host:
        """Return a new host, with the last parts of its address. Raises Refused."""
        if self.refused:
            return Host(f"127.0.{network}.{number}", HOST)
        return self._host(f"10.77.{network}.{number}")

    def _build(self) -> None:
        if not shutil.which("nsenter"):
            raise Refused("there is no nsenter")
        run("nft", "--version")
        run("ip", "link", "add", _BRIDGE, "type", "bridge", "forward_delay", "0")
        run("ip", "address", "add", f"{_CENTRE}/16", "dev", _BRIDGE)
        run("ip", "link", "set", _BRIDGE, "up")
        self.centre = Host(_CENTRE, HOST)
        self.centre.filter(_RULES)
        self._host("10.77.255.254").close()  # what the last step asks for is there, or nothing is

    def _host(self, address: str) -> Host:
        host = Host(address, _CENTRE, _new_namespace())
        self._others.append(host)
        where = host.command([])[1].removeprefix("--net=")
        port = f"{_BRIDGE}{next(_numbers)}"
        run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", where)
        run("ip", "link", "set", port, "master", _BRIDGE, "up")
        run(*host.command(["ip", "link", "set", "lo", "up"]))
        run(*host.command(["ip", "address", "add", f"{address}/16", "dev", "eth0"]))
        run(*host.command(["ip", "link", "set", "eth0", "up"]))
        host.filter(_RULES)
        return host


def _new_namespace() -> int:
    """Return a descriptor of a new network namespace. Raises Refused."""
    found: list[int | Refused] = []

    def make() -> None:  # in a thread of its own, which alone is moved there
        try:
            unshare_network()
            found.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        except Refused as error:
            found.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(found[0], Refused):
        raise found[0]
    return found[0]
