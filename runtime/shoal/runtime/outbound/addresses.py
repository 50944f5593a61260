"""Which addresses HTTP tasks and webhooks may reach.

What a definition or a server says is judged by the address that it leads to, never by its
spelling. Refused by default: the worker's own machine (loopback), its link (where clouds have
their metadata services), multicast, addresses that mean nothing to a client, and all of these in
the forms in which IPv6 carries IPv4. Private networks are allowed: a company's own services are
what most tasks ask. The settings ``http_deny`` and ``http_allow`` of workers and alert servers
change that.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Self

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

REFUSED: Mapping[Network, str] = {
    ip_network(network): what
    for network, what in {
        "0.0.0.0/8": "this machine",
        "127.0.0.0/8": "this machine (loopback)",
        "169.254.0.0/16": "link-local, where clouds have their metadata services",
        "192.0.0.0/24": "reserved, and a cloud's metadata service",
        "100.100.100.200/32": "a cloud's metadata service",
        "168.63.129.16/32": "a cloud's own service",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved or broadcast",
        "::/128": "this machine",
        "::1/128": "this machine (loopback)",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "ff00::/8": "multicast",
        "fd00:ec2::254/128": "a cloud's metadata service",
        "fd20:ce::254/128": "a cloud's metadata service",
        "64:ff9b:1::/48": "a local translation of IPv4 addresses",
        "2001::/32": "a tunnel (Teredo)",
    }.items()
}
# Prefixes behind which the last 32 bits are an IPv4 address.
_CARRIERS = [
    ip_network(text) for text in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
]
_SIX_TO_FOUR = ip_network("2002::/16")


def read_networks(text: str) -> tuple[Network, ...]:
    """Return the networks in ``text``, which commas or blanks separate. Raises ValueError."""
    return tuple(ip_network(one) for one in re.split(r"[,\s]+", text.strip(", \t\n")) if one)


@dataclass(frozen=True)
class AddressPolicy:
    """``allowed`` goes before ``denied``, which adds to what is refused by default."""

    allowed: tuple[Network, ...] = ()
    denied: tuple[Network, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Self:
        """Return the policy of a worker's settings. Raises ValueError."""
        return cls(
            read_networks(settings.get("http_allow", "")),
            read_networks(settings.get("http_deny", "")),
        )

    def refusal(self, text: str) -> str | None:
        """Return why the address ``text`` may not be reached; None if it may.

        Raises ValueError if it is not an address.
        """
        for address in _meant(ip_address(text)):
            if any(address in network for network in self.allowed):
                continue
            for network, what in REFUSED.items():
                if address in network:
                    return what
            if any(address in network for network in self.denied):
                return "denied by this worker's setting http_deny"
        return None


def _meant(address: Address) -> Iterator[Address]:
    """Yield the address, and the IPv4 address that it carries.

    One that is mapped is the IPv4 address: so the system takes it.
    """
    if not isinstance(address, IPv6Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    yield IPv6Address(int(address))  # without its scope
    if address in _SIX_TO_FOUR:
        yield IPv4Address((int(address) >> 80) & 0xFFFFFFFF)
    elif int(address) > 1 and any(address in carrier for carrier in _CARRIERS):
        yield IPv4Address(int(address) & 0xFFFFFFFF)
