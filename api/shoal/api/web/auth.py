"""Who may call: every client that shows the token of the data folder.

The token is a bearer token in a header, never a cookie, so no other site can use a browser's
session. The two pages meant for browsers (/docs and the OpenAPI description) take it as the
password of basic authentication too, since a browser cannot send the header by itself.
"""

import base64
import binascii
import hmac
import os
import secrets
from pathlib import Path
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from shoal.api.services import services_of
from shoal.api.web.errors import BadToken, Unauthorized

SHORTEST = 20  # characters of a token

_scheme = HTTPBearer(
    scheme_name="token",
    description="The token in the file `token` of the data folder.",
    auto_error=False,
)


async def require_token(
    request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_scheme)]
) -> None:
    """Dependency of every router but the public one."""
    check_token(request)


def check_token(request: Request) -> None:
    """Raise Unauthorized unless the request carries the token."""
    scheme, given = _credentials(request)
    if scheme != "bearer" or not _equal(given, services_of(request).token):
        raise Unauthorized(_REASON, headers={"WWW-Authenticate": "Bearer"})


async def require_browser(request: Request) -> None:
    """Dependency of pages for browsers. Raises Unauthorized with a challenge they understand."""
    scheme, given = _credentials(request)
    if scheme == "basic":
        given = _password(given)
    if scheme not in ("bearer", "basic") or not _equal(given, services_of(request).token):
        challenge = 'Basic realm="Shoal: any user name, the token as password", charset="UTF-8"'
        raise Unauthorized(_REASON, headers={"WWW-Authenticate": challenge})


_REASON = (
    "send the token in the header 'Authorization: Bearer …'; "
    "it stands in the file 'token' of the data folder"
)


def _credentials(request: Request) -> tuple[str, str]:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower(), given.strip()


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def ensure_token(file: Path) -> str:
    """Return the token in ``file``; made with mode 0600 if there is none. Raises BadToken."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(file)
    except OSError as error:
        raise BadToken(f"cannot create the token file {file}: {error.strerror}") from error
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as out:
        out.write(token + "\n")
    return token


def _read(file: Path) -> str:
    try:
        mode = file.stat().st_mode & 0o777
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadToken(f"cannot read the token file {file}: {error}") from error
    if mode & 0o077:
        raise BadToken(f"others may read the token file {file}; run: chmod 600 '{file}'")
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
        raise BadToken(
            f"the token file {file} holds no token of at least {SHORTEST} printable ASCII "
            "characters; delete it, then a new one is made at the next start"
        )
    return token
