"""What a kind of data source is; ``shoal.runtime.source_kinds`` finds the installed kinds.

A kind is a class that says which fields and options a data source of it has, and how a worker tries
one. It registers under the entry-point group ``shoal.data_source_kinds``, the built-in kinds too.
The name of its entry point is the name of the kind. Its module must be cheap to import, because the
API and the command line load it to check data sources. Database drivers and other heavy libraries
belong into the module that ``probe`` names, or into the task types that use the kind.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from shoal.core.errors import ShoalError
from shoal.core.hints import Hints

LONGEST_PEM = 64 * 1024  # characters
KIND_PATTERN = r"^[a-z][a-z0-9_-]{0,49}$"
# Neither drivers nor connection strings find anything to interpret in such a name.
PLAIN_NAME = r"""^[^\x00-\x1f\x7f-\x9f;=(){}?&/\\'"@%,]{1,128}$"""

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s+([A-Za-z0-9+/=\s]+?)-----END \1-----\s*")


def _certificates(text: str) -> str:
    position = 0
    content = text.strip()
    while found := _PEM.match(content, position):
        if found[1] != "CERTIFICATE":
            raise ValueError(f"contains a {found[1]}: give certificates only")
        try:
            base64.b64decode("".join(found[2].split()), validate=True)
        except binascii.Error:
            raise ValueError("contains a certificate that is not valid base64") from None
        position = found.end()
    if not content or position != len(content):
        raise ValueError(
            "is not PEM text: expected -----BEGIN CERTIFICATE----- … -----END CERTIFICATE-----"
        )
    return content + "\n"


Pem = Annotated[str, Field(max_length=LONGEST_PEM), AfterValidator(_certificates)]
Seconds = Annotated[int, Field(ge=1, le=300)]
PlainName = Annotated[str, Field(pattern=PLAIN_NAME)]

#: Values of TLS options with which the server's certificate is verified.
VERIFYING = frozenset({"verify-ca", "verify-full", "https", True})
TLS_MODES = (
    "prefer uses TLS if the server offers it. prefer and require verify no certificate. verify-ca "
    "verifies the certificate, verify-full also the host name in it."
)
TLS_OR_NOT = "verify-full verifies the certificate and the host name in it."


class SourceOptions(BaseModel):
    """Base of the options of a kind: an allow-list with types.

    Unknown options are refused, and types are not converted. No option may read a file of the
    worker, load code, run a statement, or weaken TLS beyond what its name says.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    tls_option: ClassVar[str | None] = None  # the option that says how TLS is used


class CertifiedOptions(SourceOptions):
    """Options of a server whose certificate can be verified."""

    ca_certificate: Pem | None = Field(
        default=None,
        description="Certificate authority of the server, as PEM text. By default the authorities "
        "that the worker's system trusts.",
    )


class ServerOptions(CertifiedOptions):
    """Options that most servers have."""

    connect_timeout: Seconds = Field(default=10, description="Seconds to connect and sign in.")


class FieldNeed(StrEnum):
    """Whether a kind has a field."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    NONE = "none"


class SourceKind:
    """Base of the kinds of data sources."""

    title: ClassVar[str]
    Options: ClassVar[type[SourceOptions]]
    #: ``module:function`` of a ``work.Work[ProbeParams]`` (``shoal.worker.types.child.probe``),
    #: which runs in a process on a worker: it signs in and logs the server's version.
    probe: ClassVar[str]

    port: ClassVar[int | None] = None  # the default port; None: the kind is a file of the worker
    host: ClassVar[FieldNeed] = FieldNeed.REQUIRED
    database: ClassVar[FieldNeed] = FieldNeed.OPTIONAL
    database_is: ClassVar[str] = "name of a database"
    user: ClassVar[FieldNeed] = FieldNeed.REQUIRED
    password: ClassVar[FieldNeed] = FieldNeed.OPTIONAL
    credential: ClassVar[str] = "password"  # what the password is called there
    #: The option, and its value, without which no password is sent; None: it is always sent.
    password_needs: ClassVar[tuple[str, str] | None] = None
    #: Advice for fields that the kind does not have, by field.
    instead: ClassVar[Mapping[str, str]] = {}


class FileKind(SourceKind):
    """Base of the kinds that are a file of the worker."""

    host = FieldNeed.NONE
    database = FieldNeed.REQUIRED
    database_is = "absolute path of a file on the worker, or :memory:"
    user = FieldNeed.NONE
    password = FieldNeed.NONE


class UnknownSourceKind(ShoalError, ValueError):
    """No installed package provides this kind. ``install``: the command that installs one."""

    def __init__(self, name: str, known: Sequence[str], install: str = "") -> None:
        self.name = name
        hint = f"; install it with `{install}`" if install else Hints().of(name, known)
        super().__init__(
            f"unknown kind of data source {name[:60]!r}{hint}; installed kinds: {', '.join(known)}"
        )


# Returns the kind of a name. Raises UnknownSourceKind.
FindSourceKind = Callable[[str], type[SourceKind]]


@cache
def options_schema(options: type[SourceOptions]) -> dict[str, Any]:
    """Return the JSON Schema of the options of a kind."""
    return options.model_json_schema(by_alias=True)
