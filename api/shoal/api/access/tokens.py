"""The texts of API tokens and session cookies, and the token file of the data folder.

Tokens and cookies are made here, and known later by their hash alone. A token has a prefix, so that
scanners of source code find a published one, and a checksum, so that scanners need not ask Shoal.
256 random bits need no slow hash.

A user who can read the token file is an administrator. That token needs no account in the database,
so it still works when no account can sign in.
"""

import hashlib
import os
import secrets
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

from shoal.api.schemas.platform.access import NewTokenOut, TokenIn, TokenOut
from shoal.api.web.errors import BadToken, FieldError, InvalidRequest
from shoal.core.access.permissions import GIVES_RIGHTS, OF_PROJECT, Permission
from shoal.core.access.principals import TokenScope
from shoal.core.access.records import ApiToken
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import NotFound

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


SHORTEST = 20  # characters of a token


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


async def scope_of(uow: UnitOfWork, body: TokenIn, visible: Iterable[str] | None) -> TokenScope:
    """Return what a token is limited to. Raises NotFound for projects that cannot be seen.

    ``visible``: the names of the projects that the owner sees; None: all.
    """
    permissions = None
    if given := sorted(GIVES_RIGHTS.intersection(body.permissions or ())):
        reason = f"{', '.join(given)}: a token that is limited to permissions gives no rights"
        raise InvalidRequest([FieldError("permissions", reason)])
    if body.permissions is not None:
        permissions = frozenset(body.permissions)
        if permissions & OF_PROJECT:  # what cannot be read cannot be changed
            permissions |= {Permission.PROJECT_READ}
    if body.projects is None:
        return TokenScope(permissions)
    seen = None if visible is None else frozenset(visible)
    ids = set()
    for name in dict.fromkeys(body.projects):
        if seen is not None and name not in seen:
            raise NotFound("project", name)
        ids.add((await uow.projects.get(name)).id)
    return TokenScope(permissions, frozenset(ids))


async def make_token(
    database: Database,
    now: datetime,
    principal_id: int,
    body: TokenIn,
    visible: Iterable[str] | None,
) -> NewTokenOut:
    """Make a token of a principal; the answer holds its text, this once."""
    text = new_token()
    expires_at = None if body.days is None else now + timedelta(days=body.days)
    async with database.unit_of_work() as uow:
        scope = await scope_of(uow, body, visible)
        stored = await uow.tokens.add(principal_id, body.name, digest(text), scope, now, expires_at)
        await uow.commit()
    return NewTokenOut(**_values(stored), token=text)


def token_out(token: ApiToken) -> TokenOut:
    """Return a token as answers have it."""
    return TokenOut(**_values(token))


def _values(token: ApiToken) -> dict[str, object]:
    known = TokenOut.model_fields
    return {name: value for name, value in asdict(token).items() if name in known}
