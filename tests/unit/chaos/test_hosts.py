"""Without a network of its own the suite has loopback addresses, and says why it cuts nothing."""

import pytest

from tests.chaos.cluster.hosts import Hosts


def test_without_a_network_hosts_are_addresses() -> None:
    with Hosts("not root") as hosts:
        assert hosts.refused == "not root"
        assert (hosts.centre.address, hosts.centre.centre) == ("127.0.0.1", "127.0.0.1")
        first, second = hosts.add(1, 1), hosts.add(2, 1)
    assert (first.address, second.address) == ("127.0.1.1", "127.0.2.1")
    assert first.centre == "127.0.0.1"
    assert first.command(["/bin/true", "x"]) == ["/bin/true", "x"]


def test_missing_tool_is_a_reason_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with Hosts("") as hosts:
        assert "nsenter" in hosts.refused
        assert hosts.add(1, 2).address == "127.0.1.2"
