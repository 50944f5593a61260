"""What is stored of a data source, and what is wrong with it.

Host, database, user and options that are texts may hold ``${name}``, ``${secret.NAME}`` and
``$[date expressions]``: they are rendered for each attempt with the parameters of its task, and
checked again then.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictInt, StrictStr, ValidationError

from shoal.core.data_sources.kinds import KINDS, KindInfo, Need, option_fields
from shoal.core.data_sources.model import Option, SourceKind
from shoal.core.data_sources.options import LONGEST_PEM, PLAIN_NAME, VERIFYING, Options, tls_of
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

    kind: SourceKind = Field(description="What is spoken at the other side.")
    host: Text = Field(default="", description="Name or address of the server.")
    port: StrictInt | None = Field(
        default=None, ge=1, le=65535, description="Null: the usual one of the kind."
    )
    database: Text = Field(
        default="", description="A database of the server; of SQLITE and DUCKDB the path of a file."
    )
    user: Text = Field(default="", description="Who signs in.")
    options: dict[str, OptionValue] = Field(
        default_factory=dict,
        max_length=MOST_OPTIONS,
        description="Those of the kind: see /data-source-kinds.",
    )
    shared_with: Annotated[list[StrictStr], Field(max_length=MOST_SHARED_WITH)] = Field(
        default_factory=list,
        description="Other projects whose tasks may use it, as PROJECT/NAME; `*` are all.",
    )

    @property
    def server(self) -> tuple[SourceKind, str, int | None]:
        """Return what a password is sent to."""
        return self.kind, self.host, self.port


def secret_of(password: str) -> str | None:
    """Return the name of the secret if a password is nothing but ``${secret.NAME}``."""
    found = _SECRET.fullmatch(password.strip())
    return found[1] if found else None


def password_problem(spec: DataSourceSpec) -> str | None:
    """Return why a data source cannot have a password; None if it can."""
    if KINDS[spec.kind].password is Need.NONE:
        return _not_taken(spec.kind, "password")
    if spec.kind is SourceKind.TRINO and spec.options.get("http_scheme", "https") != "https":
        return "is sent to trino with http_scheme=https only"
    if spec.kind is SourceKind.FLINK and spec.options.get("tls", "disable") == "disable":
        return "is sent to flink with tls=verify-full only"
    return None


def findings(spec: DataSourceSpec) -> list[Finding]:
    """Return everything that is wrong with a data source: the field, and what to do.

    Of texts that are still to be rendered, the placeholders alone are checked. No value is
    repeated: there may be a secret in it.
    """
    info = KINDS[spec.kind]
    return [
        *_fields(spec, info),
        *_options(spec.kind, spec.options, info),
        *_sharing(spec),
    ]


def _fields(spec: DataSourceSpec, info: KindInfo) -> Iterator[Finding]:
    texts: Mapping[str, tuple[str, Need, Callable[[str], str | None]]] = {
        "host": (spec.host, info.host, _host_problem),
        "database": (
            spec.database,
            info.database,
            _path_problem if info.is_file else _name_problem,
        ),
        "user": (spec.user, info.user, _user_problem),
    }
    for name, (text, need, problem_of) in texts.items():
        if need is Need.NONE and text:
            yield name, _not_taken(spec.kind, name)
        elif need is Need.REQUIRED and not text:
            yield name, f"is required for {spec.kind}" + _what(info, name)
        elif _CONTROL.search(text):
            yield name, "holds a control character"
        elif text and is_open(text):
            yield from ((name, problem) for problem in placeholders.check(text)[:1])
        elif text and (problem := problem_of(text)):
            yield name, problem
    if spec.port is not None and info.port is None:
        yield "port", f"is not taken: {spec.kind} is a file of the worker"
    elif spec.port is not None and not spec.host:
        yield "port", "is of no use without a host"


def _not_taken(kind: SourceKind, field: str) -> str:
    if KINDS[kind].is_file:
        return f"is not taken: {kind} is a file of the worker, whose path is `database`"
    if kind is SourceKind.TRINO and field == "database":
        return "is not taken by trino: use the options catalog and schema"
    return f"is not taken by {kind}"


def _what(info: KindInfo, field: str) -> str:
    return f": {info.database_is}" if field == "database" else ""


def _host_problem(text: str) -> str | None:
    if "://" in text:
        return "is an address with a scheme; give the host alone, and the port beside it"
    try:
        ipaddress.ip_address(text)
    except ValueError:
        pass
    else:
        return None
    if len(text) <= 253 and _HOST.fullmatch(text):
        return None
    if re.fullmatch(r".+:\d+", text):
        return "holds a port; that is a field of its own"
    return "is not a name or address of one host"


def _name_problem(text: str) -> str | None:
    return None if _NAME.fullmatch(text) else "holds characters that no name of a database has here"


def _path_problem(text: str) -> str | None:
    if text == ":memory:":
        return None
    if not text.startswith("/") or ".." in text.split("/") or not _PATH.fullmatch(text):
        return "must be an absolute path on the worker without .., ? and #, or :memory:"
    return None


def _user_problem(text: str) -> str | None:
    return None if _USER.fullmatch(text) else "holds characters that no name of a user has here"


# -- options -----------------------------------------------------------------------------------


def _options(kind: SourceKind, options: Mapping[str, Option], info: KindInfo) -> Iterator[Finding]:
    known = option_fields(kind)
    hints = Hints()
    closed: dict[str, Option] = {}
    for name, value in options.items():
        if name not in known:
            yield f"options.{name}", _unknown(kind, name, known, hints)
        elif isinstance(value, str) and is_open(value) and takes_text(kind, name):
            if _CONTROL.search(value):
                yield f"options.{name}", "holds a control character"
            yield from ((f"options.{name}", one) for one in placeholders.check(value)[:1])
        else:
            closed[name] = value
    try:
        checked = info.options.model_validate(closed)
    except ValidationError as error:
        for item in error.errors():
            name = str(item["loc"][0])
            yield f"options.{name}", _message(item, known[name].description or "")
        return
    yield from _useless_certificate(checked, "ca_certificate" in options)


def _unknown(kind: SourceKind, name: str, known: Mapping[str, Any], hints: Hints) -> str:
    hint = hints.of(name, known)
    return f"is not an option of {kind}" + (hint or f"; it has: {', '.join(sorted(known))}")


@cache
def takes_text(kind: SourceKind, name: str) -> bool:
    """Say whether any text may be a value of an option: such a one may be rendered."""
    schema = KINDS[kind].options.model_json_schema(by_alias=True)["properties"][name]
    forms = schema.get("anyOf", [schema])
    return any(form.get("type") == "string" and "enum" not in form for form in forms)


def _message(item: Mapping[str, Any], description: str) -> str:
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    if item["type"] == "string_pattern_mismatch":
        return f"cannot be this; it is: {description}"
    said = str(item["msg"])
    return said[:1].lower() + said[1:]


def _useless_certificate(options: Options, is_given: bool) -> Iterator[Finding]:
    used = tls_of(options)
    if is_given and used is not None and used[1] not in VERIFYING:
        name, value = used
        shown = str(value).lower()
        yield (
            "options.ca_certificate",
            f"is not looked at with {name}={shown}, which verifies no certificate",
        )


# -- sharing -----------------------------------------------------------------------------------


def _sharing(spec: DataSourceSpec) -> Iterator[Finding]:
    for index, project in enumerate(spec.shared_with):
        if project != EVERY_PROJECT and not re.fullmatch(NAME_PATTERN, project):
            yield f"shared_with[{index}]", "is not a name of a project; `*` are all projects"
    if not spec.shared_with:
        return
    for name, text in texts_of(spec).items():
        if is_open(text):
            yield (
                name,
                "holds a placeholder, and the data source is shared: tasks of other projects would "
                "choose where the password goes",
            )


def texts_of(spec: DataSourceSpec) -> dict[str, str]:
    """Return the texts of a data source that are rendered, by field."""
    plain = {"host": spec.host, "database": spec.database, "user": spec.user}
    options = {
        f"options.{name}": value for name, value in spec.options.items() if isinstance(value, str)
    }
    return plain | options
