"""ID tokens: each check by itself, where others would refuse the same token as well."""

from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from shoal.api.federation.errors import BadAnswer
from shoal.api.federation.id_token import ExpectedClaims, UnknownSigningKey, claims_of, public_keys

NOW = 1_800_000_000
KEY = ECKey.generate_key("P-256", auto_kid=True)
CLAIMS: dict[str, Any] = {
    "iss": "https://id.example",
    "sub": "s",
    "aud": "shoal",
    "exp": NOW + 300,
    "iat": NOW,
    "nonce": "n",
}


def expected(*algorithms: str) -> ExpectedClaims:
    """What tokens have to be."""
    return ExpectedClaims("https://id.example", "shoal", "n", "at", algorithms)


def signed(key: Any, algorithm: str, **header: str) -> str:
    """Return a token of this key."""
    head = {"alg": algorithm, "kid": key.kid, **header}
    return jwt.encode(head, CLAIMS, key, algorithms=[algorithm])


def test_algorithm_has_to_be_one_of_the_settings() -> None:
    keys = KeySet([KEY])
    token = signed(KEY, "ES256")
    assert claims_of(token, keys, expected("RS256", "ES256"), NOW)["sub"] == "s"
    with pytest.raises(BadAnswer, match="refused"):
        claims_of(token, keys, expected("RS256"), NOW)


def test_key_has_to_be_known_by_its_id() -> None:
    other = ECKey.generate_key("P-256", auto_kid=True)
    with pytest.raises(UnknownSigningKey):
        claims_of(signed(other, "ES256"), KeySet([KEY]), expected("ES256"), NOW)
    with pytest.raises(BadAnswer, match="BadSignature"):
        claims_of(signed(other, "ES256", kid=KEY.kid or ""), KeySet([KEY]), expected("ES256"), NOW)


def test_secret_keys_and_those_of_encryption_are_left_out() -> None:
    rsa = RSAKey.generate_key(2048, auto_kid=True).as_dict(private=False)
    good = KEY.as_dict(private=False)
    junk: list[Any] = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"},
        {**rsa, "use": "enc"},
        {"kty": "EC", "crv": "P-256"},
        {"kty": "AKP", "kid": "of tomorrow"},
        7,
        None,
    ]
    assert [key.kid for key in public_keys({"keys": [*junk, good]})] == [KEY.kid]
    without: list[Any] = [junk, [], None, {}, "x"]
    for keys in without:
        with pytest.raises(BadAnswer):
            public_keys({"keys": keys})
