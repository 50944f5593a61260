"""The names that the API answers to, and the data folder that it has.

A page of another site can have its own name point to this machine, and be served as if it were
one of ours ("DNS rebinding"). So a request has to name the API as its clients do.

A program of this machine finds the API by what a data folder says. A copy of the folder says the
same, and has the same token. So the program says which folder it has, and the API refuses if that
is not its own.
"""

import secrets
from pathlib import Path

from starlette.requests import Request

from shoal.api.settings import ApiSettings, host_of_url
from shoal.api.web.errors import OtherFolder, UnknownHost
from shoal.runtime.folder_identity import FolderIdentity

#: What a program says of its data folder, as ``FolderIdentity`` writes it.
FOLDER = "Shoal-Data-Folder"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANY = ("0.0.0.0", "::")  # noqa: S104 - to tell that they are not names


def names_of(settings: ApiSettings) -> frozenset[str]:
    """Return the names, without ports and in lower case."""
    own = () if settings.host in _ANY else (settings.host,)
    names = (*_LOOPBACK, *map(host_of_url, (*own, *settings.allowed_hosts)))
    return frozenset(name.lower().removesuffix(".") for name in names)


def check_host(request: Request, names: frozenset[str]) -> None:
    """Raise UnknownHost unless a request names the API by one of its names."""
    host = request.headers.get("host", "").lower()
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    if name not in names:
        raise UnknownHost(
            f"this API is not called {name[:100]!r}; its administrator can add the name to "
            "allowed_hosts in the section [api]"
        )


def check_folder(request: Request, data: Path, token: str) -> None:
    """Raise OtherFolder if a request is for the API of a data folder that is not ``data``.

    ``token`` of the data folder. A caller with another token is refused later, without the path.
    """
    named = FolderIdentity.from_text(request.headers.get(FOLDER, ""))
    own = FolderIdentity.of(data)
    if named is None or own is None or named.is_same(own):
        return
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if secrets.compare_digest(given.encode(), token.encode()):
        raise OtherFolder(
            f"the API here has the data folder {data}, and the request is for another"
        )
