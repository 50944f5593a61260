"""What a connection to an API is made with."""

import ssl

import pytest

from shoal.client.rest.operations.call import part
from shoal.client.rest.operations.exchange import ApiAddress, ApiExchange


def verify(url: str) -> ssl.SSLContext | bool:
    found: ssl.SSLContext | bool = ApiExchange(ApiAddress(url, "")).options({})["verify"]
    return found


def test_our_own_machine_is_asked_without_authorities_and_nobody_is_trusted() -> None:
    trusted = verify("http://127.0.0.1:8765")
    assert isinstance(trusted, ssl.SSLContext)
    assert trusted.verify_mode == ssl.CERT_REQUIRED
    assert trusted.check_hostname
    assert trusted.get_ca_certs() == []


@pytest.mark.parametrize("url", ["https://127.0.0.1:8765", "http://shoal.example", "https://x"])
def test_all_others_have_to_prove_who_they_are_to_a_public_authority(url: str) -> None:
    assert verify(url) is True


def test_a_name_is_one_part_of_a_path() -> None:
    names = {"a b": "a%20b", "../x": "..%2Fx", "..": "%2E%2E", "a/b?c#d": "a%2Fb%3Fc%23d"}
    assert {name: part(name) for name in names} == names
