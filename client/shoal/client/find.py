"""Where the cluster is: the data folder, the API's address and the token.

The data folder is the one that was named (``--data``), else ``$SHOAL_DATA``, else the nearest
folder ``.shoal`` upwards from the current one, else ``~/.shoal``. ``shoal up`` leaves the address
of the API in its ``cluster.json`` and the token in ``token``. ``$SHOAL_URL`` and ``$SHOAL_TOKEN``
lead to a remote API instead, unless a data folder was named.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from shoal.client.errors import NoCluster
from shoal.client.local.state import read_state

FOLDER = ".shoal"
# The address of an API that was started on its own, without ``shoal up``.
DEFAULT_URL = "http://127.0.0.1:8765"


@dataclass(frozen=True)
class Api:
    """How to reach an API. ``data`` is None for a remote one."""

    url: str  # without a trailing slash
    token: str = field(repr=False)
    data: Path | None = None

    @property
    def hint(self) -> str:
        """What to do if it does not answer."""
        if self.data is None:
            return "check SHOAL_URL, and that the API is running there"
        folder = "" if self.data == default_folder() else f" --data '{self.data}'"
        return f"start it with `shoal up{folder}`"


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the data folder to use when none was named. It need not exist."""
    named = environment.get("SHOAL_DATA")
    if named:
        return Path(named).expanduser().absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return Path("~").expanduser() / FOLDER


def data_folder(named: Path | None) -> Path:
    """Return the data folder, absolute: the named one or the default."""
    return default_folder() if named is None else named.expanduser().absolute()


def find_api(named: Path | None = None, environment: Mapping[str, str] = os.environ) -> Api:
    """Return how to reach the API. Raises NoCluster, saying what is missing."""
    url = environment.get("SHOAL_URL")
    if named is None and url:
        return _remote(url, environment)
    folder = default_folder(environment) if named is None else data_folder(named)
    state = read_state(folder)
    token = _read_token(folder)
    if token is None:
        what = (
            f"the data folder {folder} has no token"
            if folder.is_dir()
            else (f"there is no data folder {folder}")
        )
        raise NoCluster(
            f"{what}, so no cluster was started there; start one with `shoal up`, name another "
            "folder with --data, or set SHOAL_URL and SHOAL_TOKEN to use a remote API"
        )
    return Api(state.api.rstrip("/") if state else DEFAULT_URL, token, folder)


def _remote(url: str, environment: Mapping[str, str]) -> Api:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NoCluster(f"SHOAL_URL is {url!r}; expected something like https://shoal.example:8765")
    token = environment.get("SHOAL_TOKEN", "").strip()
    if not token:
        raise NoCluster(
            f"SHOAL_URL names {url}, but SHOAL_TOKEN is not set; it is the content of the file "
            "`token` in that cluster's data folder"
        )
    return Api(url.rstrip("/"), token)


def _read_token(folder: Path) -> str | None:
    file = folder / "token"
    try:
        return file.read_text().strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise NoCluster(f"cannot read the token file {file}: {error}") from error
