"""Data sources as they are defined and stored, and the checks of a definition.

Host, database, user and text options may contain ``${name}``, ``${secret.NAME}`` and
``$[date expressions]``. They are rendered for each attempt with the parameters of its task, and
checked again then.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictInt, StrictStr, ValidationError

from shoal.core.data_sources.kind import (
    KIND_PATTERN,
    LONGEST_PEM,
    PLAIN_NAME,
    VERIFYING,
    FieldNeed,
    SourceKind,
    SourceOptions,
    options_schema,
)
from shoal.core.data_sources.model import Option
from shoal.core.definition.fields import NAME_PATTERN, Strict
from shoal.core.hints import Hints
from shoal.core.macros import placeholders
from shoal.core.macros.placeholders import is_open

EVERY_PROJECT = "*"
MOST_SHARED_WITH = 100  # projects
LONGEST_TEXT = 4096  # characters
MOST_OPTIONS = 50

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_HOST = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.(?!-)[A-Za-z0-9_-]{1,63})*\.?")
_USER = re.compile(r"""[^\x00-\x1f\x7f-\x9f;={}()'"]{1,255}""")
_PATH = re.compile(r"[^\x00-\x1f\x7f-\x9f?#]{1,1024}")
_NAME = re.compile(PLAIN_NAME)
_SECRET = re.compile(r"\$\{secret\.([^{}$]*)\}")

Text = Annotated[StrictStr, Field(max_length=LONGEST_TEXT)]
Finding = tuple[str, str]  # the field, and what is wrong with it


def _plain(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise ValueError("must be a text, a number, true or false")
    if isinstance(value, str) and len(value) > LONGEST_PEM:
        raise ValueError(f"has more than {LONGEST_PEM:,} characters")
    return value


OptionValue = Annotated[str | int | float | bool, BeforeValidator(_plain)]


class DataSourceSpec(Strict):
    """A data source as people define it, without its name and its password."""

    kind: Annotated[StrictStr, Field(pattern=KIND_PATTERN)] = Field(
        description="One of /data-source-kinds, such as postgresql."
    )
    host: Text = Field(default="", description="Name or address of the server.")
    port: StrictInt | None = Field(
        default=None, ge=1, le=65535, description="Null: the default port of the kind."
    )
    database: Text = Field(
        default="", description="A database of the server, or the path of a file (sqlite, duckdb)."
    )
    user: Text = Field(default="", description="User name to sign in with.")
    options: dict[str, OptionValue] = Field(
        default_factory=dict,
        max_length=MOST_OPTIONS,
        description="Options of the kind: see /data-source-kinds.",
    )
    shared_with: Annotated[list[StrictStr], Field(max_length=MOST_SHARED_WITH)] = Field(
        default_factory=list,
        description="Other projects whose tasks may use it, as PROJECT/NAME; `*`: all projects.",
    )

    @property
    def server(self) -> tuple[str, str, int | None]:
        """Kind, host and port that the password is sent to."""
        return self.kind, self.host, self.port


def secret_of(password: str) -> str | None:
    """Return the name of the secret if a password is nothing but ``${secret.NAME}``."""
    found = _SECRET.fullmatch(password.strip())
    return found[1] if found else None


@dataclass(frozen=True)
class SourcePassword:
    """A password as it is stored: ciphertext, the name of a secret, or neither."""

    ciphertext: str | None = field(default=None, repr=False)
    secret: str | None = None

    def __bool__(self) -> bool:
        return self.ciphertext is not None or self.secret is not None


@dataclass(frozen=True)
class StoredDataSource:
    """A data source of a project. ``version`` grows with each change."""

    project: str
    name: str
    spec: DataSourceSpec
    password: SourcePassword
    version: int
    created_at: datetime
    updated_at: datetime


def password_problem(spec: DataSourceSpec, kind: type[SourceKind]) -> str | None:
    """Return why a data source cannot have a password; None if it can."""
    if kind.password is FieldNeed.NONE:
        return _not_taken(spec.kind, kind, "password")
    if kind.password_needs is not None:
        option, value = kind.password_needs
        if spec.options.get(option, kind.Options.model_fields[option].default) != value:
            return f"is sent to {spec.kind} with {option}={value} only"
    return None


def findings(spec: DataSourceSpec, kind: type[SourceKind]) -> list[Finding]:
    """Return everything that is wrong with a data source: the field, and what to do.

    Of texts that are still to be rendered, only the placeholders are checked. Values are not
    repeated, because they may contain a secret.
    """
    return [*_fields(spec, kind), *_options(spec, kind), *_sharing(spec)]


def _fields(spec: DataSourceSpec, kind: type[SourceKind]) -> Iterator[Finding]:
    database_problem = _path_problem if kind.host is FieldNeed.NONE else _name_problem
    texts: Mapping[str, tuple[str, FieldNeed, Callable[[str], str | None]]] = {
        "host": (spec.host, kind.host, _host_problem),
        "database": (spec.database, kind.database, database_problem),
        "user": (spec.user, kind.user, _user_problem),
    }
    for name, (text, need, problem_of) in texts.items():
        if need is FieldNeed.NONE and text:
            yield name, _not_taken(spec.kind, kind, name)
        elif need is FieldNeed.REQUIRED and not text:
            what = f": {kind.database_is}" if name == "database" else ""
            yield name, f"is required for {spec.kind}{what}"
        elif _CONTROL.search(text):
            yield name, "contains a control character"
        elif text and is_open(text):
            yield from ((name, problem) for problem in placeholders.check(text)[:1])
        elif text and (problem := problem_of(text)):
            yield name, problem
    if spec.port is not None and kind.port is None:
        yield "port", f"is not a field of {spec.kind}, which is a file of the worker"
    elif spec.port is not None and not spec.host:
        yield "port", "has no effect without a host"


def _not_taken(name: str, kind: type[SourceKind], field: str) -> str:
    if kind.host is FieldNeed.NONE:
        return f"is not a field of {name}, which is a file of the worker: its path is `database`"
    advice = f": {kind.instead[field]}" if field in kind.instead else ""
    return f"is not a field of {name}{advice}"


def _host_problem(text: str) -> str | None:
    if "://" in text:
        return "has a scheme: give the host only, and the port in its own field"
    try:
        ipaddress.ip_address(text)
    except ValueError:
        pass
    else:
        return None
    if len(text) <= 253 and _HOST.fullmatch(text):
        return None
    if re.fullmatch(r".+:\d+", text):
        return "contains a port: use the field port"
    return "is not a name or address of one host"


def _name_problem(text: str) -> str | None:
    return None if _NAME.fullmatch(text) else "contains a character that database names cannot have"


def _path_problem(text: str) -> str | None:
    if text == ":memory:":
        return None
    if not text.startswith("/") or ".." in text.split("/") or not _PATH.fullmatch(text):
        return "must be an absolute path on the worker without .., ? and #, or :memory:"
    return None


def _user_problem(text: str) -> str | None:
    return None if _USER.fullmatch(text) else "contains a character that user names cannot have"


# -- options -----------------------------------------------------------------------------------


def _options(spec: DataSourceSpec, kind: type[SourceKind]) -> Iterator[Finding]:
    known = options_schema(kind.Options)["properties"]
    hints = Hints()
    closed: dict[str, Option] = {}
    for name, value in spec.options.items():
        if name not in known:
            hint = hints.of(name, known) or f"; its options: {', '.join(sorted(known))}"
            yield f"options.{name}", f"is not an option of {spec.kind}{hint}"
        elif isinstance(value, str) and is_open(value) and takes_text(kind.Options, name):
            if _CONTROL.search(value):
                yield f"options.{name}", "contains a control character"
            yield from ((f"options.{name}", one) for one in placeholders.check(value)[:1])
        else:
            closed[name] = value
    try:
        checked = kind.Options.model_validate(closed)
    except ValidationError as error:
        for item in error.errors():
            name = str(item["loc"][0])
            yield f"options.{name}", _message(item, known[name].get("description", ""))
        return
    yield from _useless_certificate(checked, "ca_certificate" in spec.options)


@cache
def takes_text(options: type[SourceOptions], name: str) -> bool:
    """Say whether any text may be a value of an option, so that it may be rendered."""
    schema = options_schema(options)["properties"][name]
    forms = schema.get("anyOf", [schema])
    return any(form.get("type") == "string" and "enum" not in form for form in forms)


def _message(item: Mapping[str, Any], description: str) -> str:
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] == "string_pattern_mismatch":
        return f"is not valid: {description}"
    said = str(item["msg"])
    return said[:1].lower() + said[1:]


def _useless_certificate(options: SourceOptions, is_given: bool) -> Iterator[Finding]:
    name = options.tls_option
    if is_given and name is not None and (value := getattr(options, name)) not in VERIFYING:
        text = f"has no effect with {name}={str(value).lower()}, which verifies no certificate"
        yield "options.ca_certificate", text


# -- sharing -----------------------------------------------------------------------------------


def _sharing(spec: DataSourceSpec) -> Iterator[Finding]:
    for index, project in enumerate(spec.shared_with):
        if project != EVERY_PROJECT and not re.fullmatch(NAME_PATTERN, project):
            yield f"shared_with[{index}]", "is not a project name; `*` means all projects"
    if not spec.shared_with:
        return
    for name, text in texts_of(spec).items():
        if is_open(text):
            yield (
                name,
                "contains a placeholder, and the data source is shared: tasks of other projects "
                "could choose where the password is sent",
            )


def texts_of(spec: DataSourceSpec) -> dict[str, str]:
    """Return the texts of a data source that are rendered, by field."""
    plain = {"host": spec.host, "database": spec.database, "user": spec.user}
    options = {
        f"options.{name}": value for name, value in spec.options.items() if isinstance(value, str)
    }
    return plain | options
