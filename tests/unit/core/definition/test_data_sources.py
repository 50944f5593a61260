"""What may be stored of a data source, and what a task is given of it."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from shoal.core.checks.parameters import params_findings
from shoal.core.data_sources.kind import FieldNeed, UnknownSourceKind, options_schema
from shoal.core.data_sources.references import is_source_name, names_sources, sources_named
from shoal.core.data_sources.resolution import UnusableDataSource, rendered
from shoal.core.data_sources.spec import (
    DataSourceSpec,
    findings,
    password_problem,
    secret_of,
)
from shoal.core.task_types import SourceName, TaskParams
from shoal.runtime.source_kinds import load_source_kind, source_kinds

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nTm8gcmVhbCBvbmU=\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nTm8gcmVhbCBvbmU=\n-----END PRIVATE KEY-----"
POSTGRESQL = load_source_kind("postgresql")
SERVER = {"kind": "postgresql", "host": "db.example.org", "database": "sales", "user": "etl"}


def source(**fields: Any) -> DataSourceSpec:
    return DataSourceSpec.model_validate({**SERVER, **fields})


def checked(spec: DataSourceSpec) -> dict[str, str]:
    return dict(findings(spec, load_source_kind(spec.kind)))


def found(**fields: Any) -> dict[str, str]:
    return checked(source(**fields))


def least(name: str) -> dict[str, Any]:
    """The fields that a data source of a kind must have."""
    kind = load_source_kind(name)
    values = {
        "host": ("h", kind.host),
        "database": ("/data/x.db" if kind.host is FieldNeed.NONE else "d", kind.database),
        "user": ("u", kind.user),
    }
    needed = {name: value for name, (value, need) in values.items() if need is FieldNeed.REQUIRED}
    return {"kind": name, **needed}


def test_what_a_kind_requires_is_enough_and_nothing_less() -> None:
    for kind in source_kinds():
        fields = least(kind)
        assert checked(DataSourceSpec.model_validate(fields)) == {}, kind
        for name in fields.keys() - {"kind"}:
            less = {key: value for key, value in fields.items() if key != name}
            assert name in checked(DataSourceSpec.model_validate(less)), kind


def test_schema_of_a_kind_describes_every_option() -> None:
    for kind in source_kinds():
        schema = options_schema(load_source_kind(kind).Options)
        assert schema["additionalProperties"] is False, kind
        assert all(each["description"] for each in schema["properties"].values()), kind


def test_unknown_kind_is_told_with_what_installs_it() -> None:
    with pytest.raises(UnknownSourceKind, match=r"'postgres'; did you mean 'postgresql'\?"):
        load_source_kind("postgres")
    for name in ("oracle", "sqlserver", "clickhouse"):
        with pytest.raises(UnknownSourceKind, match="pip install shoal-experimental-databases"):
            load_source_kind(name)


# What drivers take and no data source may: local files, code, statements, weaker TLS.
DANGEROUS = {
    "postgresql": [
        "sslcert",
        "sslkey",
        "sslrootcert",
        "passfile",
        "service",
        "options",
        "hostaddr",
    ],
    "mariadb": ["local_infile", "init_command", "read_default_file", "unix_socket", "ssl_verify"],
    "mysql": ["local_infile", "allowLoadLocalInfile", "autoDeserialize", "conv", "cursorclass"],
    "sqlite": ["enable_load_extension", "uri", "factory"],
    "duckdb": ["allow_unsigned_extensions", "enable_external_access", "temp_directory"],
    "trino": ["verify", "auth"],
    "hive": ["configuration", "kerberos_service_name"],
    "spark": ["spark.driver.extraJavaOptions"],
    "ssh": ["known_hosts", "proxy_command", "agent_forwarding", "config"],
    "flink": ["verify", "proxy", "headers", "rest.address"],
}


def test_options_that_could_do_harm_do_not_exist() -> None:
    assert DANGEROUS.keys() == set(source_kinds())
    for kind, names in DANGEROUS.items():
        for name in names:
            spec = DataSourceSpec.model_validate({**least(kind), "options": {name: "x"}})
            assert "is not an option" in checked(spec)[f"options.{name}"], kind


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"options": {"sslmod": "require"}}, "options.sslmod", "did you mean 'sslmode'?"),
        (
            {"options": {"zzz": 1}},
            "options.zzz",
            "its options: ca_certificate, connect_timeout, sslmode",
        ),
        ({"options": {"sslmode": "allow"}}, "options.sslmode", "'verify-full'"),
        ({"options": {"sslmode": "${mode}"}}, "options.sslmode", "'verify-full'"),
        ({"options": {"connect_timeout": "10"}}, "options.connect_timeout", "valid integer"),
        ({"options": {"connect_timeout": True}}, "options.connect_timeout", "valid integer"),
        ({"options": {"connect_timeout": 0}}, "options.connect_timeout", "greater than"),
        (
            {"options": {"sslmode": "verify-ca", "ca_certificate": "/etc/passwd"}},
            "options.ca_certificate",
            "is not PEM text",
        ),
        (
            {"options": {"sslmode": "verify-ca", "ca_certificate": CERTIFICATE + "\n" + KEY}},
            "options.ca_certificate",
            "PRIVATE KEY",
        ),
        (
            {"options": {"sslmode": "require", "ca_certificate": CERTIFICATE}},
            "options.ca_certificate",
            "no effect with sslmode=require",
        ),
        ({"host": "postgresql://db"}, "host", "scheme"),
        ({"host": "db:5432"}, "host", "a port"),
        ({"host": "a,b"}, "host", "one host"),
        ({"host": "/var/run/postgresql"}, "host", "one host"),
        ({"host": "-oProxyCommand"}, "host", "one host"),
        ({"database": "x host=evil"}, "database", "a character that"),
        ({"database": "x;TrustServerCertificate=yes"}, "database", "a character that"),
        ({"user": "u;x"}, "user", "a character that"),
        ({"user": "${u}\x1b[2J"}, "user", "control character"),
        (
            {"options": {"ca_certificate": "${ca}\x9b", "sslmode": "verify-ca"}},
            "options.ca_certificate",
            "control",
        ),
        ({"user": "$[nonsense(]"}, "user", "unknown function"),
        ({"kind": "sqlite", "database": "/x.db", "host": "h"}, "host", "path is `database`"),
        (
            {"kind": "sqlite", "database": "/x.db", "host": "", "port": 1},
            "port",
            "a file of the worker",
        ),
        ({"kind": "sqlite", "database": "x.db"}, "database", "absolute path"),
        ({"kind": "sqlite", "database": "/a/../b"}, "database", "absolute path"),
        ({"kind": "sqlite", "database": "file:/x?mode=rwc"}, "database", "absolute path"),
        ({"kind": "sqlite", "database": "/x?mode=rwc"}, "database", "absolute path"),
        ({"kind": "duckdb", "database": "md:x"}, "database", "absolute path"),
        ({"kind": "trino", "database": "d"}, "database", "options catalog and schema"),
        (
            {"kind": "trino", "options": {"schema": "a;b"}},
            "options.schema",
            "is not valid: Schema of",
        ),
        ({"kind": "spark", "host": "", "port": 1, "database": ""}, "port", "without a host"),
        ({"shared_with": ["a b"]}, "shared_with[0]", "not a project name"),
        ({"shared_with": ["p"], "host": "${h}"}, "host", "could choose where the password is sent"),
    ],
)
def test_what_cannot_be_stored_is_told_by_its_field(
    fields: dict[str, Any], field: str, words: str
) -> None:
    assert words in found(**fields)[field]


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "127.0.0.1"},
        {"host": "::1"},
        {"host": "db-1.example.org", "port": 65535},
        {"host": "${env}.example.org", "database": "sales_$[yyyy]", "user": "${secret.user}"},
        {
            "options": {
                "sslmode": "verify-full",
                "ca_certificate": f"\n{CERTIFICATE}\n{CERTIFICATE}",
            }
        },
        {"options": {"sslmode": "verify-full", "ca_certificate": "${ca}"}},
        {"user": "etl@server", "shared_with": ["p", "*"]},
        {"user": "DOMAIN\\etl", "database": "Größe #1"},
    ],
)
def test_what_can_be_stored(fields: dict[str, Any]) -> None:
    assert found(**fields) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"port": 0},
        {"port": 65536},
        {"port": "5432"},
        {"port": True},
        {"kind": "Mongo DB"},
        {"kind": ""},
        {"options": {"sslmode": ["require"]}},
        {"password": "x"},
    ],
)
def test_what_has_no_place_in_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        source(**fields)


def test_password_is_refused_where_it_would_not_be_safe() -> None:
    def problem(**fields: Any) -> str | None:
        spec = source(**fields)
        return password_problem(spec, load_source_kind(spec.kind))

    assert problem() is None
    assert "a file of the worker" in (problem(kind="duckdb") or "")
    assert "http_scheme=https" in (problem(kind="trino", options={"http_scheme": "http"}) or "")
    flink = {"kind": "flink", "database": "", "user": ""}
    assert "tls=verify-full" in (problem(**flink) or "")
    assert problem(**flink, options={"tls": "verify-full"}) is None
    assert secret_of("${secret.db}") == "db"
    assert secret_of("x${secret.db}") is None
    assert secret_of("plain") is None


# -- what a task is given --------------------------------------------------------------------------


def replacing(**values: str) -> Callable[[str], str]:
    def render(text: str) -> str:
        for name, value in values.items():
            text = text.replace("${" + name + "}", value)
        return text

    return render


def test_task_is_given_rendered_texts_and_defaults() -> None:
    spec = source(host="${env}.db", options={"ca_certificate": "${ca}", "sslmode": "verify-ca"})
    render = replacing(env="test", ca=CERTIFICATE)
    done = rendered("wh", spec, POSTGRESQL, render, password="p", version=3)
    assert (done.host, done.port, done.database, done.user) == ("test.db", None, "sales", "etl")
    assert done.options == {
        "sslmode": "verify-ca",
        "ca_certificate": CERTIFICATE + "\n",
        "connect_timeout": 10,
    }
    assert (done.name, done.password, done.version) == ("wh", "p", 3)
    assert "password" not in repr(done)
    spec = source(kind="trino", database="", options={"schema": "s"})
    trino = rendered("t", spec, load_source_kind("trino"), str)
    assert trino.options == {"schema": "s", "http_scheme": "https", "connect_timeout": 10}


@pytest.mark.parametrize(
    ("fields", "values", "words"),
    [
        ({"host": "${env}"}, {"env": "evil:1"}, "data source wh: host (${env}) contains a port"),
        ({"host": "${env}"}, {}, "names a parameter that the task does not have: env"),
        ({"host": "${env}"}, {"env": "${other}"}, "renders to a text that contains a placeholder"),
        ({"host": "${env}"}, {"env": ""}, "is required"),
        ({"database": "${d}"}, {"d": "x host=evil"}, "contains a character"),
        ({"user": "$${name}"}, {}, "renders to a text that contains a placeholder"),
        ({"options": {"oops": 1}}, {}, "options.oops is not an option"),
    ],
)
def test_what_does_not_render_to_a_usable_value_is_told_without_it(
    fields: dict[str, Any], values: dict[str, str], words: str
) -> None:
    with pytest.raises(UnusableDataSource) as raised:
        rendered("wh", source(**fields), POSTGRESQL, replacing(**values))
    assert words in str(raised.value)
    assert "evil" not in str(raised.value)
    assert "shoal data-source set" in str(raised.value)


# -- names in params -------------------------------------------------------------------------------

Sql = Annotated[str, SourceName(frozenset({"sqlite"}))]


class Inner(BaseModel):
    source: Sql | None = None
    note: str = ""
    inside: "list[Inner]" = []


class Params(TaskParams):
    one: Annotated[str, SourceName()]
    many: list[Sql] | None = None
    by_name: dict[str, Inner] = {}
    inner: Inner = Inner(source="of_a_default")
    either: dict[str, Sql] | str = "plain"
    pair: tuple[int, Sql] = (1, "second")
    script: str = "not a name"
    default: Annotated[str, Field(min_length=1), SourceName()] = "usual"


class Plain(TaskParams):
    script: str
    lines: list[str] = []


def named(params: Mapping[str, Any]) -> dict[tuple[str | int, ...], str]:
    return {path: text for path, text, _ in sources_named(Params, params)}


def test_names_are_found_wherever_the_mark_stands() -> None:
    assert named({"one": "a"}) == {
        ("one",): "a",
        ("inner", "source"): "of_a_default",
        ("pair", 1): "second",
        ("default",): "usual",
    }
    params = {
        "one": "a",
        "many": ["b", "c"],
        "by_name": {"k": {"source": "d", "note": "x", "inside": [{"source": "e"}]}},
        "inner": {},
        "either": {"x": "f"},
        "pair": [2, "g"],
        "default": "h",
    }
    assert named(params) == {
        ("one",): "a",
        ("many", 0): "b",
        ("many", 1): "c",
        ("by_name", "k", "source"): "d",
        ("by_name", "k", "inside", 0, "source"): "e",
        ("either", "x"): "f",
        ("pair", 1): "g",
        ("default",): "h",
    }


def test_most_types_name_none() -> None:
    assert names_sources(Params)
    assert not names_sources(Plain)
    assert list(sources_named(Plain, {"script": "x", "lines": ["y"]})) == []


def test_definition_may_hold_only_what_can_be_a_name() -> None:
    def problems(**params: Any) -> dict[tuple[str | int, ...], str]:
        return dict(params_findings(Params, {"one": "a", **params}, on_worker=True))

    assert problems() == {}
    assert problems(one="other/wh", default="${env}_wh") == {}
    assert "is not a name of a data source" in problems(many=["a b"])["many", 0]
    assert "cannot be the name" in problems(one="${secret.x}")["one",]
    assert not is_source_name("a/b/c")
    assert not is_source_name("/b")
