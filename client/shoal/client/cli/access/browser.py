"""``shoal login --oidc``: a browser signs in, and brings this command what it has got."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.client.rest.access.sign_in import Place
    from shoal.client.rest.operations.generated.operations import Operations

_MOST_S = 600.0


@contextmanager
def by_browser(place: "Place", provider: str | None) -> "Iterator[Operations]":
    """Sign in at a provider of the API. Raises NoWay, NobodyCame, and what ``sign_in`` raises.

    A browser that cannot be opened here can be one that reaches a port of this machine.
    """
    import webbrowser

    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.access.loopback import Loopback
    from shoal.client.rest.access.sign_in import sign_in_by_code

    name = _provider(place, provider)
    with Loopback() as loopback:
        address = loopback.address(place.url, name)
        say(f"sign in with a browser of this machine; it shows the number {loopback.number}:")
        say(address)
        webbrowser.open(address)
        code = loopback.wait(_MOST_S)
    with sign_in_by_code(place, code, loopback.verifier) as session:
        yield session


def _provider(place: "Place", wanted: str | None) -> str:
    """Return the name of the provider; the only one need not be said."""
    from shoal.client.errors import NoWay
    from shoal.client.rest.access.sign_in import ways

    names = [one["name"] for one in ways(place) if one["kind"] == "oidc"]
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None or wanted not in names:
        raise NoWay(place.url, wanted, names)
    return wanted
