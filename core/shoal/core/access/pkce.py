"""Proof of who has begun something, by who brings it to its end (PKCE, RFC 7636)."""

import base64
import hashlib


def challenge_of(verifier: str) -> str:
    """Return the challenge of a code verifier: method S256."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def number_of(challenge: str) -> str:
    """Return a number of six digits that people compare, at a terminal and in a browser."""
    digest = hashlib.sha256(challenge.encode()).digest()
    return f"{int.from_bytes(digest[:4], 'big') % 1_000_000:06d}"
