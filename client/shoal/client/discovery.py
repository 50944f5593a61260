"""Which cluster a command speaks to: the address of its API and a token. The first of these:

1. the data folder that was named (``--data``);
2. the API at ``$SHOAL_URL`` with the token ``$SHOAL_TOKEN``, else with that of a login there;
3. the data folder ``$SHOAL_DATA``, else the nearest folder ``.shoal`` upwards from the current one;
4. the API of the latest ``shoal login``;
5. the data folder ``~/.shoal``, which therefore does not count among the nearest ones.

``shoal up`` leaves the address of the API in the ``cluster.json`` of a data folder and a token in
its file ``token``. An API that was started alone (``shoal api``) is where the section ``[api]`` of
the folder's settings says, if that or the environment names a port. ``$SHOAL_CA`` names a PEM file
with the authority of an API whose certificate is from a private one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.client.errors import NoCluster
from shoal.client.local.data_folder import is_running, own_state, running_state

if TYPE_CHECKING:
    from shoal.client.logins import SavedLogin

FOLDER = ".shoal"
# The address of an API that was started on its own, without ``shoal up`` and without a port.
DEFAULT_URL = "http://127.0.0.1:8765"
# How this machine reaches an API that listens at all of its addresses.
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing listens here
#: Why a token may be refused of which no more is known.
REFUSED = (
    "it belongs to another cluster, has expired or was revoked; check --data, SHOAL_DATA, "
    "SHOAL_URL and SHOAL_TOKEN"
)


class TokenSource(StrEnum):
    """What an API's token comes from."""

    DATA_FOLDER = "data folder"
    ENVIRONMENT = "environment"
    LOGIN = "login"


@dataclass(frozen=True)
class Api:
    """How to reach an API. ``data`` is None for a remote one; ``login`` is where there is one."""

    url: str  # without a trailing slash
    token: str = field(repr=False)
    data: Path | None = None
    login: "SavedLogin | None" = None
    ca: Path | None = None
    #: The data folder that the API has to have, where only the API can tell; None: it is known.
    expected: Path | None = None
    #: Whether `shoal up` runs the API now: if it does not answer, it is starting.
    is_supervised: bool = False
    #: Whether the settings of the data folder name the port, for an API that is started alone.
    is_configured: bool = False

    @property
    def source(self) -> TokenSource:
        """What the token comes from."""
        if self.login is not None:
            return TokenSource.LOGIN
        return TokenSource.ENVIRONMENT if self.data is None else TokenSource.DATA_FOLDER

    @property
    def hint(self) -> str:
        """What to do if it does not answer."""
        match self.source:
            case TokenSource.LOGIN:
                return unreachable_hint(self.url)
            case TokenSource.ENVIRONMENT:
                return "check SHOAL_URL, and that the API is running there"
        folder = "" if self.data == default_folder() else f" --data '{self.data}'"
        if self.is_configured:
            return (
                f"start it with `shoal api{folder}`, or correct its port: [api] port or "
                "SHOAL_API_PORT"
            )
        return f"start it with `shoal up{folder}`"

    @property
    def refused(self) -> str:
        """What to do if it does not accept the token."""
        match self.source:
            case TokenSource.LOGIN:
                return (
                    "it has expired or was revoked, or the account is disabled; sign in again "
                    f"with `shoal login {self.url}`"
                )
            case TokenSource.ENVIRONMENT:
                return "SHOAL_TOKEN is wrong, has expired or was revoked"
        return REFUSED


def unreachable_hint(url: str) -> str:
    """Return what to do if the API at ``url``, which a user has typed once, does not answer."""
    return f"check that {url} is its address and that it is running; `shoal login URL` changes it"


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the data folder to use when none was named. It need not exist."""
    named = environment.get("SHOAL_DATA")
    if named:
        return Path(named).expanduser().absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return _folder_at_home()


def data_folder(named: Path | None) -> Path:
    """Return the data folder, absolute: the named one or the default."""
    return default_folder() if named is None else named.expanduser().absolute()


def find_api(named: Path | None = None, environment: Mapping[str, str] = os.environ) -> Api:
    """Return how to reach the API. Raises NoCluster, saying what is missing."""
    if named is not None:
        return local_api(data_folder(named))
    if url := environment.get("SHOAL_URL"):
        return _remote(url, environment)
    folder = default_folder(environment)
    is_at_home = folder.resolve() == _folder_at_home().resolve()
    if environment.get("SHOAL_DATA") or not is_at_home:
        return local_api(folder)
    from shoal.client.logins import logins_file, read_logins

    login = read_logins(logins_file(environment)).current
    return local_api(folder) if login is None else api_of(login, environment)


def api_of(login: "SavedLogin", environment: Mapping[str, str] = os.environ) -> Api:
    """Return how to reach the API of a login."""
    ca = Path(login.ca) if login.ca else ca_of(environment)
    return Api(login.url, login.token, login=login, ca=ca)


def ca_of(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the PEM file that ``$SHOAL_CA`` names."""
    named = environment.get("SHOAL_CA")
    return Path(named).expanduser().absolute() if named else None


def local_api(folder: Path) -> Api:
    """Return how to reach the API of a data folder.

    While ``shoal up`` holds the folder, its ``cluster.json`` counts. At other times another program
    may have got the address, or the folder may be a copy; the request names the folder. Then a port
    in the settings comes before the address of the last ``shoal up``, which does not use it.
    Raises NoCluster, and InvalidSettings if the settings cannot be read and there was no last
    ``shoal up``.
    """
    running = running_state(folder)
    if running is None and is_running(folder):
        raise NoCluster(
            f"a cluster is starting in {folder} and has no API yet; try again in some seconds"
        )
    state = running or own_state(folder)
    token = _read_token(folder)
    if token is None:
        what = (
            f"the data folder {folder} has no token"
            if folder.is_dir()
            else (f"there is no data folder {folder}")
        )
        raise NoCluster(
            f"{what}, so no cluster was started there; start one with `shoal up`, name another "
            "folder with --data, or sign in to one with `shoal login URL`"
        )
    url = None if running is not None else _configured_url(folder, is_needed=state is None)
    if url is not None:
        return Api(url, token, folder, ca=ca_of(os.environ), expected=folder, is_configured=True)
    if state is None:
        return Api(DEFAULT_URL, token, folder)
    expected = folder if running is None else None
    return Api(
        state.api.rstrip("/"), token, folder, expected=expected, is_supervised=running is not None
    )


def _configured_url(folder: Path, *, is_needed: bool) -> str | None:
    """Return the address of an API that is started alone; None: no port is configured.

    Settings that cannot be read count as none, unless ``is_needed``: no other address is known.
    Raises InvalidSettings.
    """
    names = {"SHOAL_CONFIG", "SHOAL_API_PORT"}
    if not (names & os.environ.keys() or (folder / "shoal.toml").exists()):
        return None  # and the imports below, which take longer than a request, are not needed
    from shoal.api.settings import ApiAddress, host_of_url
    from shoal.runtime.settings import InvalidSettings, load_settings

    try:
        api = load_settings(ApiAddress, "api", folder)
    except InvalidSettings:
        if is_needed:
            raise
        return None
    if "port" not in api.model_fields_set or not api.port:
        return None
    host = _LOOPBACK_OF.get(api.host, api.host)
    if api.has_tls and api.allowed_hosts:
        host = api.allowed_hosts[0]  # a name that the certificate should have
    return f"{'https' if api.has_tls else 'http'}://{host_of_url(host)}:{api.port}"


def _remote(url: str, environment: Mapping[str, str]) -> Api:
    from shoal.client.logins import logins_file, normal, read_logins

    try:
        where = normal(url)
    except NoCluster as error:
        raise NoCluster(f"SHOAL_URL: {error}") from None
    token = environment.get("SHOAL_TOKEN", "").strip()
    if token:
        return Api(url.rstrip("/"), token, ca=ca_of(environment))
    login = read_logins(logins_file(environment)).at(where)
    if login is None:
        raise NoCluster(
            f"SHOAL_URL names {where}, but SHOAL_TOKEN is not set and you have not signed in "
            f"there; use `shoal login {where}`, or set SHOAL_TOKEN to a token"
        )
    return api_of(login, environment)


def _folder_at_home() -> Path:
    return Path("~").expanduser() / FOLDER


def _read_token(folder: Path) -> str | None:
    file = folder / "token"
    try:
        return file.read_text().strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise NoCluster(f"cannot read the token file {file}: {error}") from error
