"""The texts of tokens and session cookies: made here, and known later by their hash alone.

A token has a prefix, so that scanners of source code find one that was published, and a checksum,
so that they need not ask us. 256 random bits need no slow hash.
"""

import hashlib
import secrets
import zlib

PREFIX = "shoal_pat_"
_BYTES = 32


def new_token() -> str:
    """Return the text of a new token. Its bearer may do what the token may."""
    secret = secrets.token_hex(_BYTES)
    return f"{PREFIX}{secret}_{_checksum(secret)}"


def new_session() -> str:
    """Return the secret of a new session."""
    return secrets.token_urlsafe(_BYTES)


def is_token(text: str) -> bool:
    """Say whether a text can be a token: its form and its checksum are right."""
    secret, _, checksum = text.removeprefix(PREFIX).partition("_")
    return text.startswith(PREFIX) and text.isascii() and checksum == _checksum(secret)


def digest(text: str) -> str:
    """Return what a token or a session is stored as: its SHA-256 in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _checksum(secret: str) -> str:
    return f"{zlib.crc32(secret.encode()):08x}"
