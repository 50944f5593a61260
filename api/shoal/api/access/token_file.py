"""The token of the data folder: who can read the file is an administrator, come what may.

It needs no user in the database, so it still works when those are gone or nobody can sign in.
"""

import os
import secrets
from pathlib import Path

from shoal.api.web.errors import BadToken

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
