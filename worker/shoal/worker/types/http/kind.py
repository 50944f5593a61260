"""The task type HTTP and its fields: the request, and what makes its answer good."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from shoal.core.definition.fields import Duration, ParameterName
from shoal.core.definition.parameters import reserved_parameter
from shoal.core.task_types import TaskParams
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.http import json_path
from shoal.worker.types.http.values import HEADER_NAME, Source

MiB = 1 << 20
MOST_IN_MEMORY = 64 * MiB  # of a body that is judged or given on
DEFAULT_BODY, DEFAULT_DOWNLOAD = 10 * MiB, 1024 * MiB
DEFAULT_TIMEOUT_S = 60.0
IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MiB, "GiB": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,12}) ?(B|KiB|MiB|GiB)")
_STATUS = re.compile(r"([1-5])xx|([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
# Of the connection, not of the request: they are Shoal's to set.
_OWN_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te"}
    | {"proxy-authenticate", "proxy-authorization", "proxy-connection", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
_LONGEST_PATTERN = 1_000  # characters
# Files that are in the folder of every attempt.
_TAKEN_FILES = frozenset(
    {"answer", "output", "parameters.json", "progress.json", "progress.json.new", "reason.json"}
    | {"settled"}
)


def has_placeholder(text: str) -> bool:
    """Return whether ``text`` holds ``${…}`` or ``$[…]``: it is judged when it is rendered."""
    return "${" in text or "$[" in text


class Part(BaseModel):
    """Base of the parts of the params: unknown fields are refused, no error shows a value."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True
    )


# -- kinds of fields ---------------------------------------------------------------------------


def _web_url(text: str) -> str:
    if has_placeholder(text):
        return text
    if re.search(r"[\x00-\x20\x7f]", text):
        raise ValueError("must not contain blanks, line ends or other control characters")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("expected a URL such as https://api.example.org/v1/jobs")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user or a password: give them in auth")
    return text


def _header_name(name: str) -> str:
    if not HEADER_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of a header")
    if name.lower() in _OWN_HEADERS:
        raise ValueError(f"{name} cannot be set by a task: it belongs to the connection")
    return name


def _header_value(value: str) -> str:
    if re.search(r"[^\x20-\x7e\t]", value) or value != value.strip():
        raise ValueError("a header's value is printable ASCII without blanks at its ends")
    return value


def _status(value: Any) -> Any:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _STATUS.fullmatch(text):
        raise ValueError("expected a status such as 200, a range such as 200-204, or 2xx")
    return text


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | int) else value


def _size(value: Any) -> Any:
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) * _UNITS[found[2]] if found else value


def _pattern(text: str) -> str:
    if len(text) > _LONGEST_PATTERN:
        raise ValueError(f"a regular expression has at most {_LONGEST_PATTERN} characters")
    if not has_placeholder(text):
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"is not a regular expression: {error}") from None
    return text


def _path(text: str) -> str:
    json_path.parse(text)
    return text


def _source(text: str) -> str:
    Source.read(text)
    return text


Url = Annotated[str, AfterValidator(_web_url)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]
Status = Annotated[str, BeforeValidator(_status, json_schema_input_type=str | int)]
Statuses = Annotated[
    tuple[Status, ...],
    BeforeValidator(_listed, json_schema_input_type=list[str | int] | str | int),
]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=list[str] | str)]
Size = Annotated[int, BeforeValidator(_size, json_schema_input_type=str | int), Field(ge=1)]
Pattern = Annotated[str, AfterValidator(_pattern)]
JsonPath = Annotated[str, AfterValidator(_path)]
ValueSource = Annotated[str, AfterValidator(_source)]
Scalar = str | int | float | bool
Period = Annotated[Duration, Field(gt=0)]


def statuses(text: str) -> range:
    """Return the statuses that one entry of a list means."""
    found = _STATUS.fullmatch(text)
    assert found is not None
    if found[1]:
        return range(100 * int(found[1]), 100 * int(found[1]) + 100)
    return range(int(found[2]), int(found[3] or found[2]) + 1)


# -- parts -------------------------------------------------------------------------------------


class Auth(Part):
    """How the request signs in: ``user`` and ``password`` (Basic), or ``bearer``."""

    user: str | None = None
    password: str = ""
    bearer: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.user is None) == (self.bearer is None):
            raise ValueError("give either user and password, or bearer")
        if self.bearer is not None and self.password:
            raise ValueError("bearer has no password")
        if self.user is not None and ":" in self.user:
            raise ValueError("a user of Basic authentication has no colon in it")
        for text in (self.user or "", self.password, self.bearer or ""):
            if re.search(r"[\x00-\x1f\x7f]", text):
                raise ValueError("must not contain line ends or other control characters")
        _header_value(self.bearer or "")
        return self


class Body(Part):
    """What the request sends: exactly one of ``text``, ``json`` and ``form``."""

    text: str | None = None
    json_: Any = Field(default=None, alias="json")
    form: dict[str, Scalar | list[Scalar]] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(value is not None for value in (self.text, self.json_, self.form)) != 1:
            raise ValueError("give exactly one of text, json and form")
        return self


class AnswerChecks(Part):
    """What an answer must be. All that is given must hold.

    ``json``: paths with the value there, or a list of values of which it is one. ``matches`` is
    searched for anywhere in the body.
    """

    status: Statuses | None = None
    json_: dict[JsonPath, Any] = Field(default_factory=dict, alias="json")
    contains: Texts = ()
    not_contains: Texts = ()
    matches: Pattern | None = None

    @property
    def needs_body(self) -> bool:
        """Whether the body has to be read as text."""
        return bool(self.json_ or self.contains or self.not_contains or self.matches is not None)

    @field_validator("status")
    @classmethod
    def _some_status(cls, status: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if status is not None and not any(statuses(one) for one in status):
            raise ValueError("no status is in it")
        return status


class Poll(Part):
    """Ask again every so often until something has come true."""

    until: AnswerChecks
    every: Period = 10.0
    at_most: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    url_from: ValueSource | None = None

    @model_validator(mode="after")
    def _says_what_for(self) -> Self:
        if self.until.status is None and not self.until.needs_body:
            raise ValueError("until is empty: give status, json, contains, not_contains or matches")
        if self.url_from is not None:
            source = Source.read(self.url_from)
            if source.kind not in ("header", "json"):
                raise ValueError("url_from is a header such as headers.Location, or a JSON path")
        return self


class HttpParams(TaskParams):
    """The request of an HTTP task, and what makes its answer good.

    ``timeout`` is one deadline over everything: looking up the host, each redirect, each request
    of ``poll`` and the last byte of the body.
    """

    model_config = ConfigDict(hide_input_in_errors=True, populate_by_name=True)

    url: Url = Field(description="http:// or https://; without user and password.")
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    query: dict[str, Scalar | list[Scalar]] = Field(
        default_factory=dict, description="Added to the URL's own query, encoded."
    )
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    auth: Auth | None = Field(default=None, description="user and password, or bearer.")
    body: Body | None = Field(default=None, description="One of text, json and form.")
    timeout: Period = Field(
        default=DEFAULT_TIMEOUT_S, description="One deadline over everything. With poll: give it."
    )
    success: AnswerChecks = Field(
        default_factory=AnswerChecks, description="What a good answer is."
    )
    poll: Poll | None = Field(default=None, description="Ask again until something is true.")
    outputs: dict[ParameterName, ValueSource] = Field(
        default_factory=dict, description="status, body, headers.NAME or a JSON path, by name."
    )
    download: str | None = Field(
        default=None, description="Name of a file in the attempt's folder for the body."
    )
    max_body: Size | None = Field(
        default=None, description="10 MiB; 1 GiB for a download. A larger body fails the attempt."
    )
    follow_redirects: Annotated[int, Field(ge=0, le=20)] = Field(
        default=0, description="How many redirects are followed."
    )
    idempotent: bool | None = Field(
        default=None, description="Whether the request may be sent again when its fate is unknown."
    )
    idempotency_header: Annotated[str, AfterValidator(_header_name)] | None = Field(
        default=None, description="Header that carries the same key in all attempts."
    )
    ca_certificate: str = Field(
        default="", description="PEM text: the authorities to trust instead of the system's."
    )
    log_body: bool = Field(
        default=False, description="Show the beginning of good answers in the log, too."
    )

    @property
    def is_idempotent(self) -> bool:
        """Whether the request may be sent again when its effect is unknown."""
        if self.idempotent is not None:
            return self.idempotent
        return self.method in IDEMPOTENT_METHODS or self.idempotency_header is not None

    @property
    def most_bytes(self) -> int:
        """How long the body of an answer may be."""
        default = DEFAULT_BODY if self.download is None else DEFAULT_DOWNLOAD
        return default if self.max_body is None else self.max_body

    @field_validator("download")
    @classmethod
    def _plain_file_name(cls, name: str | None) -> str | None:
        if name is not None and not _FILE_NAME.fullmatch(name):
            raise ValueError(
                "expected a file name of letters, digits, '_', '.' and '-' without a folder"
            )
        if name in _TAKEN_FILES:
            raise ValueError(f"{name} is a file of Shoal's own in the attempt's folder")
        return name

    @field_validator("outputs")
    @classmethod
    def _free_names(cls, outputs: dict[str, str]) -> dict[str, str]:
        for name in outputs:
            if reserved_parameter(name):
                raise ValueError(f"{name!r} is reserved: it would change the tasks that receive it")
        return outputs

    @field_validator("ca_certificate")
    @classmethod
    def _pem(cls, text: str) -> str:
        if text and not has_placeholder(text) and "-----BEGIN CERTIFICATE-----" not in text:
            raise ValueError("expected PEM text: -----BEGIN CERTIFICATE----- …")
        return text

    @model_validator(mode="after")
    def _headers_once(self) -> Self:
        given = [name.lower() for name in self.headers]
        if self.auth is not None:
            given.append("authorization")
        if self.idempotency_header is not None:
            given.append(self.idempotency_header.lower())
        for name in given:
            if given.count(name) > 1:
                raise ValueError(f"the header {name} is given twice")
        return self

    @model_validator(mode="after")
    def _download_is_not_read(self) -> Self:
        sources = [Source.read(text) for text in self.outputs.values()]
        if self.download is None:
            if any(source.needs_download for source in sources):
                raise ValueError("outputs: file, size and sha256 are of a download")
            if self.most_bytes > MOST_IN_MEMORY:
                raise ValueError("max_body: more than 64 MiB needs download")
        elif self.success.needs_body or any(source.needs_body for source in sources):
            raise ValueError("a download is not read: neither success nor outputs can look at it")
        elif self.poll is not None:
            raise ValueError("download and poll: use two tasks, the second one downloads")
        return self

    @model_validator(mode="after")
    def _may_be_polled(self) -> Self:
        if self.poll is None:
            return self
        if "timeout" not in self.model_fields_set:
            raise ValueError("poll needs a timeout: the deadline of all its requests together")
        if self.timeout <= self.poll.every:
            raise ValueError("poll: every must be shorter than timeout")
        if self.poll.url_from is None and not self.is_idempotent:
            raise ValueError(
                f"poll would send the {self.method} again and again; give url_from, from where on "
                "the answer is asked for, or idempotent: true"
            )
        return self


class Http(ChildType[HttpParams]):
    """Sends a request in a process of the attempt's own. A kill ends it at once."""

    Params = HttpParams
    work = "shoal.worker.types.http.work:run"

    @classmethod
    def repeats_after_loss(cls, params: Mapping[str, Any]) -> bool:
        """See TaskKind: a request that is not idempotent may have been carried out."""
        return HttpParams.model_validate(params).is_idempotent
