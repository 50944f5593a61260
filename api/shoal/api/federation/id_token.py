"""What an ID token must be, before anything that it says is believed."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jws, jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet

from shoal.api.federation.errors import BadAnswer
from shoal.api.federation.identity import is_subject

_LEEWAY_S = 60  # by which clocks may differ
_KINDS = frozenset({"RSA", "EC", "OKP"})  # keys that may be public
_MOST_KEYS = 50


class UnknownSigningKey(Exception):
    """The token is signed with a key that is not known: the provider may have a new one."""


@dataclass(frozen=True)
class ExpectedClaims:
    """What the claims of a token have to be."""

    issuer: str
    client_id: str
    nonce: str
    access_token: str
    algorithms: Collection[str]


def public_keys(found: dict[str, Any]) -> KeySet:
    """Return the keys of a JWKS that signatures may be made with. Raises BadAnswer.

    Secret keys are left out, wherever they come from: a token signed with one could be anybody's.
    """
    listed = found.get("keys")
    if not isinstance(listed, list):
        raise BadAnswer("the keys of the provider are not a JWKS")
    keys: list[Key] = []
    for one in listed[:_MOST_KEYS]:
        if not isinstance(one, dict) or one.get("kty") not in _KINDS or one.get("use") == "enc":
            continue
        try:
            keys.append(JWKRegistry.import_key(one))
        except (JoseError, ValueError, TypeError):
            continue  # of a kind that is not known here
    if not keys:
        raise BadAnswer("the provider has no key that a signature can be checked with")
    return KeySet(keys)


def claims_of(text: str, keys: KeySet, expected: ExpectedClaims, now_s: float) -> dict[str, Any]:
    """Return the claims of a token that is what it should be. Raises BadAnswer, UnknownKey."""
    try:
        token = jwt.decode(text, _chosen(keys), algorithms=list(expected.algorithms))
        claims = CodeIDToken(
            token.claims,
            token.header,
            {
                "iss": {"essential": True, "value": expected.issuer},
                "aud": {"essential": True, "value": expected.client_id},
            },
            {
                "nonce": expected.nonce,
                "client_id": expected.client_id,
                "access_token": expected.access_token,
            },
        )
        claims.validate(int(now_s), _LEEWAY_S)
    except InvalidKeyIdError as error:
        raise UnknownSigningKey from error
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        raise BadAnswer(f"the ID token is refused: {type(error).__name__} {error}") from error
    if not is_subject(claims.get("sub")):
        raise BadAnswer("the ID token is refused: its subject is none")
    return dict(claims)


def _chosen(keys: KeySet) -> Callable[[Any], Key]:
    """Return what finds the key of a token: by its id, which a token may lack if there is one."""

    def choose(signed: jws.CompactSignature) -> Key:
        return keys.get_by_kid(signed.headers().get("kid"))

    return choose
