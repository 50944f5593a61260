"""What goes wrong when people sign in elsewhere.

::

    ApiError
    ├── SignInFailed        400  what the browser brings back cannot be used; nothing was begun
    ├── SignInRefused       403  the person is known there, and has no account here
    ├── AccountNameTaken    409  another account has the name that a new one would get
    └── IssuerUnavailable   503  the provider or directory does not answer as it should (retriable)
    CannotServe
    └── BadFederation            a file that the settings name cannot be used
    BadAnswer                    an unusable answer of a provider; it never leaves this room

The texts say nothing that a provider has sent, and nothing of whether an account exists to who has
not signed in.
"""

from http import HTTPStatus
from typing import ClassVar

from shoal.api.web.errors import ApiError, CannotServe, ProblemKind


class SignInFailed(ApiError):
    kind = ProblemKind(HTTPStatus.BAD_REQUEST, "sign-in-failed", "Sign-in failed")


class SignInRefused(ApiError):
    kind = ProblemKind(HTTPStatus.FORBIDDEN, "no-account", "There is no account for this person")


class AccountNameTaken(ApiError):
    kind = ProblemKind(HTTPStatus.CONFLICT, "name-taken", "The name is taken")


class IssuerUnavailable(ApiError):
    """The reason is in the log of the API, which administrators read, and not in the answer."""

    kind = ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "issuer-unavailable",
        "The provider or directory does not answer as it should",
    )
    retriable: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} cannot be asked at this moment; who has a password here can sign in with that"
        )


class BadFederation(CannotServe):
    """The text names the file and the setting."""


class BadAnswer(Exception):
    """A provider did not answer as it should. The text is for the log."""
