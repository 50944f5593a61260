"""Ways of signing in, and what is sent on them."""

from typing import Annotated, Literal

from pydantic import Field

from shoal.api.schemas.common import Answer, RequestBody

#: A challenge or a verifier of PKCE (RFC 7636).
Challenge = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]


class WayOut(Answer):
    """A way of signing in."""

    name: str
    kind: Literal["password", "ldap", "oidc"] = Field(
        description="password, ldap: POST a name and a password. oidc: lead the browser there."
    )
    title: str = Field(description="For people.")
    path: str


class CodeIn(RequestBody):
    """What a command line has got from the browser."""

    code: Challenge
    verifier: str = Field(pattern=r"^[A-Za-z0-9._~-]{43,128}$", description="Of RFC 7636.")


class IdentityIn(RequestBody):
    """Who a user is for a provider or a directory."""

    issuer: str = Field(min_length=1, max_length=500, pattern=r"^[!-~]+$")
    subject: str = Field(
        min_length=1,
        max_length=255,
        pattern=r"^[ -~]+$",
        description="What the issuer calls the user for ever: not the name, not the address.",
    )
