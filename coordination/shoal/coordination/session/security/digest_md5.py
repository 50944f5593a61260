"""SASL's DIGEST-MD5 (RFC 2831), the mechanism by which ZooKeeper knows users with passwords.

The password itself is never sent, and the server has to prove that it knows it, too. MD5 is weak:
what is exchanged can be guessed from by those who read it, so use it over TLS.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

# ZooKeeper's servers and clients have these by agreement, whatever the host's name is.
_REALM = "zk-sasl-md5"
_URI = f"zookeeper/{_REALM}"
_COUNT, _QUALITY = b"00000001", b"auth"  # one response to each nonce; no protection of what follows

_DIRECTIVE = re.compile(rb'\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')


class NotDigestMd5(Exception):
    """The server did not answer as RFC 2831 wants it; the text says how."""


@dataclass(slots=True)
class DigestMd5:
    """One authentication: ``respond`` to the challenge, then ``verify`` the server's proof."""

    user: str
    password: str = field(repr=False)
    client_nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    uri: str = _URI  # of the service, as RFC 2831 writes it
    _proof: bytes = field(default=b"", repr=False)

    def respond(self, challenge: bytes) -> bytes:
        """Return the answer to the server's challenge. Raises NotDigestMd5."""
        asked = _directives(challenge)
        if (nonce := asked.get("nonce")) is None:
            raise NotDigestMd5(
                "it offers no SASL with DIGEST-MD5 (its JAAS configuration has no section Server)"
            )
        if asked.get("algorithm") != b"md5-sess":
            raise NotDigestMd5(f"it wants the algorithm {asked.get('algorithm')!r}, not md5-sess")
        if _QUALITY not in asked.get("qop", _QUALITY).replace(b" ", b"").split(b","):
            raise NotDigestMd5(f"it wants the protection {asked['qop']!r}, not auth")
        realm = asked.get("realm", _REALM.encode())
        encoding = "utf-8" if asked.get("charset", b"").lower() == b"utf-8" else "latin-1"
        try:
            user = self.user.encode(encoding)
            secret = b":".join(
                (_hashed(self.user, encoding), realm, _hashed(self.password, encoding))
            )
        except UnicodeEncodeError:
            raise NotDigestMd5("it does not take the characters of our user or password") from None
        cnonce, uri = self.client_nonce.encode(), self.uri.encode()
        key = _hex(_md5(secret) + b":" + nonce + b":" + cnonce)

        def proof_of(action: bytes) -> bytes:
            return _hex(
                b":".join((key, nonce, _COUNT, cnonce, _QUALITY, _hex(action + b":" + uri)))
            )

        self._proof = proof_of(b"")
        return b",".join(
            (
                *([b"charset=utf-8"] if encoding == "utf-8" else []),
                b"username=" + _quoted(user),
                b"realm=" + _quoted(realm),
                b"nonce=" + _quoted(nonce),
                b"nc=" + _COUNT,
                b"cnonce=" + _quoted(cnonce),
                b"digest-uri=" + _quoted(uri),
                b"response=" + proof_of(b"AUTHENTICATE"),
                b"qop=" + _QUALITY,
            )
        )

    def verify(self, final: bytes) -> None:
        """Return if the server knows the password as well. Raises NotDigestMd5."""
        shown = _directives(final).get("rspauth", b"")
        if not self._proof or not hmac.compare_digest(shown, self._proof):
            raise NotDigestMd5("it could not prove that it knows our password")


def _directives(message: bytes) -> dict[str, bytes]:
    """Return the values of a message by their names; of several with one name, the first."""
    found: dict[str, bytes] = {}
    for match in _DIRECTIVE.finditer(message):
        name, quoted, plain = match.groups()
        value = plain if quoted is None else re.sub(rb"\\(.)", rb"\1", quoted)
        found.setdefault(name.decode().lower(), value)
    return found


def _hashed(text: str, encoding: str) -> bytes:
    """Return ``text`` as it goes into the hash: in ISO 8859-1 wherever that has its characters."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode(encoding)


def _quoted(value: bytes) -> bytes:
    return b'"' + re.sub(rb'(["\\])', rb"\\\1", value) + b'"'


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _hex(data: bytes) -> bytes:
    return _md5(data).hex().encode()
