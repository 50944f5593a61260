"""Errors of the API, and the kinds of problem documents (RFC 9457) that they become.

::

    ShoalError
    ├── ApiError                   an answer to a request
    │   ├── MalformedBody          400  the body is not JSON
    │   ├── Unauthorized           401  no token, or a wrong one
    │   ├── Forbidden              403  the caller may not do it, but may see what it is about
    │   ├── CrossSite              403  a page of another site uses a browser's session
    │   ├── NoSuchThing            404  an object that the request names does not exist
    │   │   └── LogDeleted         404  the worker has deleted the log
    │   ├── UnknownHost            421  the request is for a name that the API does not have
    │   ├── OtherFolder            421  the request is for the API of another data folder
    │   ├── UploadStalled          408  no byte of a file came for long
    │   ├── KeyReused              422  the idempotency key belongs to another request
    │   ├── NotNewestAttempt       409  another attempt of the task has followed the named one
    │   ├── PreconditionFailed     412  the state is not the one that the request is about
    │   ├── PreconditionMissing    428  the request does not say about which state it is
    │   ├── BodyTooLarge           413
    │   ├── NotJson                415  the body is of another media type
    │   ├── RangeNotSatisfiable    416
    │   ├── InvalidRequest         422  fields with unusable values; ``errors`` names each
    │   ├── TooManyRequests        429  too many at once, or too soon after the last one
    │   └── LogUnavailable         503  the worker that holds a log is not there (retriable)
    └── CannotServe                the API does not start
        ├── NotAnAddress           the address to listen on is none
        ├── ClearBeyondLoopback    what clients send would be readable on the network
        ├── NoAllowedHosts         it is not said by which names clients reach it
        ├── BadCertificate         the certificate or its key cannot be used
        ├── AddressInUse           another program has the port
        └── BadToken               the token file cannot be used
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from shoal.core.errors import ShoalError


@dataclass(frozen=True)
class ProblemKind:
    """A kind of problem. ``slug`` is its name for programs, ``title`` the same in words."""

    status: HTTPStatus
    slug: str
    title: str
    detail: str | None = None  # None: the error's own text may be shown


INTERNAL = ProblemKind(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "Internal error")
NOT_FOUND = ProblemKind(HTTPStatus.NOT_FOUND, "not-found", "Not found")
UNUSABLE = ProblemKind(
    HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", "The request has unusable values"
)


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of a request. ``field`` is empty for the whole."""

    field: str
    message: str
    line: int | None = None


class ApiError(ShoalError):
    """An answer. The text becomes the problem's detail, so it never holds a secret."""

    kind: ClassVar[ProblemKind] = INTERNAL
    members: Mapping[str, Any] = MappingProxyType({})  # what its document has besides

    def __init__(
        self,
        detail: str,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        super().__init__(detail)


class MalformedBody(ApiError):
    kind = ProblemKind(HTTPStatus.BAD_REQUEST, "malformed-json", "The body is not JSON")


class Unauthorized(ApiError):
    kind = ProblemKind(HTTPStatus.UNAUTHORIZED, "unauthorized", "A token is needed")


class Forbidden(ApiError):
    kind = ProblemKind(HTTPStatus.FORBIDDEN, "forbidden", "Not permitted")


class CrossSite(ApiError):
    kind = ProblemKind(HTTPStatus.FORBIDDEN, "cross-site", "The request comes from another site")


class TooManyRequests(ApiError):
    kind = ProblemKind(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", "Too many requests")

    def __init__(self, detail: str, retry_after_s: float) -> None:
        super().__init__(detail, headers={"Retry-After": str(max(1, round(retry_after_s)))})


class UnknownHost(ApiError):
    kind = ProblemKind(HTTPStatus.MISDIRECTED_REQUEST, "unknown-host", "This API is not called so")


class OtherFolder(ApiError):
    kind = ProblemKind(
        HTTPStatus.MISDIRECTED_REQUEST, "other-data-folder", "This API has another data folder"
    )


class NoSuchThing(ApiError):
    kind = NOT_FOUND


class LogDeleted(NoSuchThing):
    """A worker had the log and has deleted it; the text says by which rule."""


class KeyReused(ApiError):
    kind = ProblemKind(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "idempotency-key-reused",
        "The idempotency key belongs to another request",
    )


class NotNewestAttempt(ApiError):
    kind = ProblemKind(
        HTTPStatus.CONFLICT, "not-newest-attempt", "Another attempt of the task has followed"
    )


class PreconditionFailed(ApiError):
    kind = ProblemKind(
        HTTPStatus.PRECONDITION_FAILED, "precondition-failed", "The state is another one"
    )

    def __init__(
        self,
        detail: str,
        current: Mapping[str, Any] | None = None,
        changes: Sequence[Any] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail, headers=headers)
        self.members = {"current": current, "changes": [asdict(change) for change in changes]}


class PreconditionMissing(ApiError):
    kind = ProblemKind(
        HTTPStatus.PRECONDITION_REQUIRED, "precondition-required", "Which state is it about?"
    )


class PreviewOutdated(ApiError):
    kind = ProblemKind(
        HTTPStatus.PRECONDITION_FAILED, "preview-outdated", "The preview is outdated"
    )


class BodyTooLarge(ApiError):
    kind = ProblemKind(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", "The body is too large"
    )


class UploadStalled(ApiError):
    kind = ProblemKind(HTTPStatus.REQUEST_TIMEOUT, "upload-stalled", "The upload came to a halt")


class BodyNotJson(ApiError):
    kind = ProblemKind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body must be JSON"
    )


class RangeNotSatisfiable(ApiError):
    kind = ProblemKind(
        HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
        "range-not-satisfiable",
        "There are no such bytes",
    )


class InvalidRequest(ApiError):
    kind = UNUSABLE

    def __init__(self, errors: Sequence[FieldError]) -> None:
        text = "; ".join(f"{e.field}: {e.message}" if e.field else e.message for e in errors)
        super().__init__(text, errors)


class LogUnavailable(ApiError):
    kind = ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "log-unavailable",
        "The worker that holds the log is not there",
    )
    retriable: ClassVar[bool] = True


class NoWorker(ApiError):
    kind = ProblemKind(
        HTTPStatus.SERVICE_UNAVAILABLE, "no-worker", "No worker that could do it answers"
    )
    retriable: ClassVar[bool] = True


class CannotServe(ShoalError):
    """Base of what keeps the API from starting."""


class NotAnAddress(CannotServe):
    """The host to listen on is a name, or nothing."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"the API cannot listen on {host!r}: give an address of this machine, such as "
            "127.0.0.1, or 0.0.0.0 for all of them"
        )


class ClearBeyondLoopback(CannotServe):
    """Passwords and tokens would cross the network in clear."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"the API does not listen on {host} in clear: anyone on the way could read "
            "passwords and tokens; set tls_certificate and tls_key in the section [api], or, with "
            "a proxy in front that has a certificate, allow_clear = true"
        )


class NoAllowedHosts(CannotServe):
    """Another site could have its name point here, and use a browser's session."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"the API listens on {host}, but it is not said by which names clients reach it; set "
            "allowed_hosts in the section [api], such as ['shoal.example.org']"
        )


class BadCertificate(CannotServe):
    """The certificate of the API is unusable."""

    def __init__(self, certificate: Path, key: Path, reason: str) -> None:
        super().__init__(
            f"the API cannot use the certificate {certificate} with the key {key}: {reason}; both "
            "have to be PEM files that belong together, the certificate with all between it and "
            "the authority"
        )


class AddressInUse(CannotServe):
    """The address cannot be listened on."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"the API cannot listen on {host}:{port}: {reason}; "
            "stop the program that uses the port, or choose another one with --port"
        )


class BadToken(CannotServe):
    """The file with the API's token is unusable."""
