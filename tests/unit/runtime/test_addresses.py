"""Which addresses are refused, in which disguise, and what settings change."""

import pytest

from shoal.runtime.outbound.addresses import AddressPolicy, read_networks
from shoal.runtime.outbound.guard import Proxy, numeric

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "169.254.0.1",
    "192.0.0.192",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    # IPv4 in IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
]
ALLOWED = [
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "93.184.215.14",
    "fd12:3456::1",
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
    "::ffff:10.0.0.1",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@pytest.mark.parametrize("address", REFUSED)
def test_refused_by_default(address: str) -> None:
    assert AddressPolicy().refusal(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_allowed_by_default(address: str) -> None:
    assert AddressPolicy().refusal(address) is None


def test_allowed_goes_before_denied_before_default() -> None:
    policy = AddressPolicy.of(
        {"http_allow": "127.0.0.0/8, 10.1.0.0/16", "http_deny": "10.0.0.0/8 ::/0"}
    )
    assert policy.refusal("127.0.0.1") is None
    assert policy.refusal("::ffff:127.0.0.1") is None
    assert policy.refusal("10.1.2.3") is None
    assert "http_deny" in str(policy.refusal("10.2.0.1"))
    assert policy.refusal("2606:2800::1")
    assert policy.refusal("169.254.169.254")


def test_carried_address_is_judged_beside_the_one_that_carries_it() -> None:
    assert AddressPolicy(denied=read_networks("8.8.8.0/24")).refusal("64:ff9b::808:808")
    assert AddressPolicy(allowed=read_networks("64:ff9b::/96")).refusal("64:ff9b::127.0.0.1")


def test_scope_of_an_address_hides_nothing() -> None:
    assert AddressPolicy(denied=read_networks("fd12::/16")).refusal("fd12::1%1")


@pytest.mark.parametrize("text", ["127.0.0.1/8", "localhost", "10.0.0.0/33"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host bits|does not appear"):
        read_networks(text)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("LocalHost", "127.0.0.1"),
        ("a.localhost.", "127.0.0.1"),
        ("xlocalhost", None),
        ("example.org", None),
        ("x" * 300, None),
    ],
)
def test_spellings_of_addresses(host: str, address: str | None) -> None:
    assert numeric(host) == address


@pytest.mark.parametrize(
    ("host", "through"),
    [
        ("example.org", True),
        ("direct.org", False),
        ("DIRECT.org.", False),
        ("xdirect.org", True),
        ("a.direct.org", True),
        ("inside.org", False),
        ("a.b.inside.org", False),
        ("xinside.org", True),
    ],
)
def test_hosts_that_are_reached_without_the_proxy(host: str, through: bool) -> None:
    settings = {"http_proxy": "http://u:p%40@proxy:3128", "http_no_proxy": "direct.org .inside.org"}
    proxy = Proxy.of(settings)
    assert proxy is not None
    assert proxy.is_for(host) is through
    assert proxy.address == ("proxy", 3128)
    assert proxy.credentials == (b"u", b"p@")
    assert Proxy.of({}) is None
