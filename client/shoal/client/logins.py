"""What ``shoal login`` keeps on this machine: for each API a token of the user who signed in.

The file is ``$XDG_CONFIG_HOME/shoal/credentials.json``, by default in ``~/.config``. Only its owner
may read it. One of its logins is the present one: that of commands that no variable and no data
folder leads elsewhere.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from shoal.client.errors import LoginsUnusable, NoCluster
from shoal.client.local.data_folder import write_private

_FOLDER, _FILE, _LOCK = "shoal", "credentials.json", "credentials.lock"
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class SavedLogin:
    """A token of this machine for the API at ``url``. Times are RFC 3339 texts."""

    url: str
    name: str  # of the user
    token: str = field(repr=False)
    token_id: int
    expires_at: str
    ca: str | None = None  # PEM file of the API's authority


@dataclass(frozen=True)
class Logins:
    """All that is kept. ``present`` is an address, or None."""

    by_url: Mapping[str, SavedLogin] = field(default_factory=dict)
    present: str | None = None

    def at(self, url: str) -> SavedLogin | None:
        """Return the login at an address."""
        return self.by_url.get(normal(url))

    @property
    def current(self) -> SavedLogin | None:
        """The present login."""
        return None if self.present is None else self.by_url.get(self.present)


def normal(url: str) -> str:
    """Return the one spelling of an API's address. Raises NoCluster if it is none."""
    parts = _parts(url)
    if parts is None:
        raise NoCluster(f"{url!r} is not an address; expected something like https://shoal.example")
    if parts.username is not None or parts.query or parts.fragment:
        raise NoCluster(
            f"the address of {parts.hostname} has more than host, port and path; names and "
            "passwords do not belong into it"
        )
    host = parts.hostname or ""
    place = f"[{host}]" if ":" in host else host
    if parts.port not in (None, _USUAL_PORTS[parts.scheme]):
        place += f":{parts.port}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError, too
    except ValueError:
        return None
    return parts if parts.scheme in _USUAL_PORTS and parts.hostname else None


def logins_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file with the logins. It need not exist."""
    given = Path(environment.get("XDG_CONFIG_HOME", ""))
    # What is not absolute must be ignored (XDG Base Directory Specification).
    base = given if given.is_absolute() else Path("~").expanduser() / ".config"
    return base / _FOLDER / _FILE


def read_logins(file: Path) -> Logins:
    """Return what is kept in ``file``, nothing if there is no such file. Raises LoginsUnusable.

    A file that others may read has been read; one that others may write leads to their API.
    """
    try:
        with file.open(encoding="utf-8") as opened:
            found = os.fstat(opened.fileno())
            if found.st_uid != os.geteuid():
                raise LoginsUnusable(
                    file,
                    f"it belongs to the user with number {found.st_uid}, not to you",
                    "delete it, and sign in again with `shoal login`",
                )
            if found.st_mode & 0o077:
                raise LoginsUnusable(
                    file, "others may read or write it", f"run: chmod 600 '{file}'"
                )
            return _logins(json.load(opened))
    except FileNotFoundError:
        return Logins()
    except OSError as error:
        raise _unusable(file, error) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LoginsUnusable(
            file, "it does not hold what `shoal login` writes", "delete it, and sign in again"
        ) from error


def keep_login(file: Path, login: SavedLogin) -> None:
    """Keep a login, which is the present one from now on. Raises LoginsUnusable."""
    with _changing(file) as logins:
        by_url = {**logins.by_url, login.url: login}
        _write(file, Logins(by_url, login.url))


def forget_login(file: Path, url: str) -> None:
    """Forget the login at ``url``. Raises LoginsUnusable."""
    with _changing(file) as logins:
        by_url = {one: login for one, login in logins.by_url.items() if one != url}
        present = None if logins.present == url else logins.present
        _write(file, replace(logins, by_url=by_url, present=present))


@contextmanager
def _changing(file: Path) -> Iterator[Logins]:
    """Give the logins to change, to one program at a time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = file.with_name(_LOCK)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield read_logins(file)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unusable(file, error) from error


def _write(file: Path, logins: Logins) -> None:
    kept = [asdict(login) for login in logins.by_url.values()]
    write_private(file, json.dumps({"present": logins.present, "logins": kept}, indent=2) + "\n")


def _logins(document: Mapping[str, object]) -> Logins:
    kept, present = document["logins"], document["present"]
    if not isinstance(kept, list) or not (present is None or isinstance(present, str)):
        raise TypeError("not what was written")
    known = {one.name for one in fields(SavedLogin)}
    logins = [SavedLogin(**{key: one[key] for key in known & one.keys()}) for one in kept]
    for login in logins:
        texts = (login.url, login.name, login.token, login.expires_at)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("not what was written")
    return Logins({login.url: login for login in logins}, present)


def _unusable(file: Path, error: OSError) -> LoginsUnusable:
    named = error.filename2 or error.filename
    path = Path(named) if isinstance(named, str) else file
    return LoginsUnusable(path, error.strerror or str(error), "put that right, and try again")
