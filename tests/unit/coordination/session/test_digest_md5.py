"""DIGEST-MD5 with the example of RFC 2831, and what a server may not do."""

import re

import pytest

from shoal.coordination.session.security.digest_md5 import DigestMd5, NotDigestMd5

CHALLENGE = (
    b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",'
    b"algorithm=md5-sess,charset=utf-8"
)


def example(password: str = "secret") -> DigestMd5:
    return DigestMd5("chris", password, "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")


def test_the_example_of_the_rfc() -> None:
    exchange = example()
    said = dict(part.split(b"=", 1) for part in exchange.respond(CHALLENGE).split(b","))
    assert said[b"response"] == b"d388dad90d4bbd760a152321f2143af7"
    assert said[b"username"] == b'"chris"'
    exchange.verify(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


@pytest.mark.parametrize("final", [b"", b"rspauth=", b"rspauth=" + b"0" * 32, b"\xff=,=,"])
def test_a_server_has_to_prove_that_it_knows_the_password(final: bytes) -> None:
    exchange = example()
    exchange.respond(CHALLENGE)
    with pytest.raises(NotDigestMd5, match="could not prove"):
        exchange.verify(final)


def test_before_the_challenge_nothing_is_a_proof() -> None:
    with pytest.raises(NotDigestMd5):
        example().verify(b'rspauth=""')


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (b"", "offers no SASL"),
        (b"\x00\xff{", "offers no SASL"),
        (CHALLENGE.replace(b"md5-sess", b"sha-256"), "algorithm b'sha-256'"),
        (CHALLENGE.replace(b'"auth"', b'"auth-int,auth-conf"'), "protection"),
    ],
)
def test_what_is_no_challenge_is_told(challenge: bytes, why: str) -> None:
    with pytest.raises(NotDigestMd5, match=re.escape(why)):
        example().respond(challenge)


def test_characters_that_a_server_does_not_take_are_told() -> None:
    latin = CHALLENGE.replace(b",charset=utf-8", b"")
    assert b'username="chris"' in example("Straße").respond(latin)
    with pytest.raises(NotDigestMd5, match="characters"):
        example("пароль").respond(latin)


def test_quotes_in_names_are_escaped() -> None:
    exchange = DigestMd5('a"b\\c', "x")
    assert rb'username="a\"b\\c"' in exchange.respond(CHALLENGE)


def test_each_exchange_has_a_nonce_of_its_own_and_none_shows_its_password() -> None:
    first, second = DigestMd5("chris", "secret"), DigestMd5("chris", "secret")
    assert first.client_nonce != second.client_nonce
    assert "secret" not in repr(first)
