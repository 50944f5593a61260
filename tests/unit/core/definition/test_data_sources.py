"""What may be stored of a data source, and what a task is given of it."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from shoal.core.checks.parameters import params_findings
from shoal.core.data_sources import SourceKind
from shoal.core.data_sources.kinds import (
    KINDS,
    Need,
    option_fields,
    option_from_text,
    options_schema,
)
from shoal.core.data_sources.naming import is_source_name, names_sources, sources_named
from shoal.core.data_sources.rendering import UnusableDataSource, rendered
from shoal.core.data_sources.spec import (
    DataSourceSpec,
    findings,
    password_problem,
    secret_of,
)
from shoal.core.task_types import SourceName, TaskParams

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nTm8gcmVhbCBvbmU=\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nTm8gcmVhbCBvbmU=\n-----END PRIVATE KEY-----"
SERVER = {"kind": "postgresql", "host": "db.example.org", "database": "sales", "user": "etl"}


def source(**fields: Any) -> DataSourceSpec:
    return DataSourceSpec.model_validate({**SERVER, **fields})


def found(**fields: Any) -> dict[str, str]:
    return dict(findings(source(**fields)))


def least(kind: SourceKind) -> dict[str, Any]:
    """The fields that a data source of a kind must have."""
    info = KINDS[kind]
    values = {
        "host": ("h", info.host),
        "database": ("/data/x.db" if info.is_file else "d", info.database),
        "user": ("u", info.user),
    }
    needed = {name: value for name, (value, need) in values.items() if need is Need.REQUIRED}
    return {"kind": kind, **needed}


@pytest.mark.parametrize("kind", SourceKind)
def test_what_a_kind_requires_is_enough_and_nothing_less(kind: SourceKind) -> None:
    fields = least(kind)
    assert findings(DataSourceSpec.model_validate(fields)) == []
    for name in fields.keys() - {"kind"}:
        less = DataSourceSpec.model_validate(
            {key: value for key, value in fields.items() if key != name}
        )
        assert name in dict(findings(less))


@pytest.mark.parametrize("kind", SourceKind)
def test_schema_of_a_kind_describes_every_option(kind: SourceKind) -> None:
    schema = options_schema(kind)
    assert schema["additionalProperties"] is False
    assert schema["properties"].keys() == option_fields(kind).keys()
    assert all(each["description"] for each in schema["properties"].values())


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
    "sqlserver": ["trust_server_certificate", "driver", "app"],
    "oracle": ["wallet_location", "config_dir", "ssl_server_dn_match"],
    "sqlite": ["enable_load_extension", "uri", "factory"],
    "duckdb": ["allow_unsigned_extensions", "enable_external_access", "temp_directory"],
    "trino": ["verify", "auth"],
    "hive": ["configuration", "kerberos_service_name"],
    "clickhouse": ["verify", "proxy_path"],
    "spark": ["spark.driver.extraJavaOptions"],
    "ssh": ["known_hosts", "proxy_command", "agent_forwarding", "config"],
    "flink": ["verify", "proxy", "headers", "rest.address"],
}


@pytest.mark.parametrize("kind", SourceKind)
def test_options_that_could_do_harm_are_none(kind: SourceKind) -> None:
    for name in DANGEROUS[kind]:
        fields = DataSourceSpec.model_validate({**least(kind), "options": {name: "x"}})
        assert "is not an option" in dict(findings(fields))[f"options.{name}"]


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"options": {"sslmod": "require"}}, "options.sslmod", "did you mean 'sslmode'?"),
        (
            {"options": {"zzz": 1}},
            "options.zzz",
            "it has: ca_certificate, connect_timeout, sslmode",
        ),
        ({"options": {"sslmode": "allow"}}, "options.sslmode", "'verify-full'"),
        ({"options": {"sslmode": "${mode}"}}, "options.sslmode", "'verify-full'"),
        ({"options": {"connect_timeout": "10"}}, "options.connect_timeout", "valid integer"),
        ({"options": {"connect_timeout": True}}, "options.connect_timeout", "valid integer"),
        ({"options": {"connect_timeout": 0}}, "options.connect_timeout", "greater than"),
        (
            {"options": {"sslmode": "verify-ca", "ca_certificate": "/etc/passwd"}},
            "options.ca_certificate",
            "is no PEM text",
        ),
        (
            {"options": {"sslmode": "verify-ca", "ca_certificate": CERTIFICATE + "\n" + KEY}},
            "options.ca_certificate",
            "PRIVATE KEY",
        ),
        (
            {"options": {"sslmode": "require", "ca_certificate": CERTIFICATE}},
            "options.ca_certificate",
            "not looked at with sslmode=require",
        ),
        ({"host": "postgresql://db"}, "host", "scheme"),
        ({"host": "db:5432"}, "host", "a port"),
        ({"host": "a,b"}, "host", "one host"),
        ({"host": "/var/run/postgresql"}, "host", "one host"),
        ({"host": "-oProxyCommand"}, "host", "one host"),
        ({"database": "x host=evil"}, "database", "characters"),
        ({"database": "x;TrustServerCertificate=yes"}, "database", "characters"),
        ({"user": "u;x"}, "user", "characters"),
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
        ({"kind": "trino", "options": {"schema": "a;b"}}, "options.schema", "cannot be this"),
        ({"kind": "spark", "host": "", "port": 1, "database": ""}, "port", "without a host"),
        ({"shared_with": ["a b"]}, "shared_with[0]", "not a name of a project"),
        ({"shared_with": ["p"], "host": "${h}"}, "host", "would choose where the password goes"),
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
        {"kind": "mongodb"},
        {"options": {"sslmode": ["require"]}},
        {"password": "x"},
    ],
)
def test_what_has_no_place_in_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        source(**fields)


def test_password_is_for_what_asks_for_one() -> None:
    assert password_problem(source()) is None
    assert "a file of the worker" in (password_problem(source(kind="duckdb")) or "")
    trino = source(kind="trino", options={"http_scheme": "http"})
    assert "http_scheme=https" in (password_problem(trino) or "")
    flink = source(kind="flink", database="", user="")
    assert "tls=verify-full" in (password_problem(flink) or "")
    safe = source(kind="flink", database="", user="", options={"tls": "verify-full"})
    assert password_problem(safe) is None
    assert secret_of("${secret.db}") == "db"
    assert secret_of("x${secret.db}") is None
    assert secret_of("plain") is None


def test_options_are_read_as_people_write_them() -> None:
    read = {
        ("postgresql", "connect_timeout", "7"): 7,
        ("postgresql", "connect_timeout", "soon"): "soon",
        ("postgresql", "sslmode", "require"): "require",
        ("sqlite", "read_only", "true"): True,
        ("trino", "schema", "123"): "123",
        ("trino", "unknown", "1"): "1",
        ("duckdb", "threads", "4"): 4,
    }
    for (kind, name, text), value in read.items():
        assert option_from_text(SourceKind(kind), name, text) == value
    assert option_from_text(SourceKind.SQLITE, "read_only", "true") is True


# -- what a task is given --------------------------------------------------------------------------


def replacing(**values: str) -> Callable[[str], str]:
    def render(text: str) -> str:
        for name, value in values.items():
            text = text.replace("${" + name + "}", value)
        return text

    return render


def test_task_is_given_rendered_texts_and_defaults() -> None:
    spec = source(host="${env}.db", options={"ca_certificate": "${ca}", "sslmode": "verify-ca"})
    done = rendered("wh", spec, replacing(env="test", ca=CERTIFICATE), password="p", version=3)
    assert (done.host, done.port, done.database, done.user) == ("test.db", None, "sales", "etl")
    assert done.options == {
        "sslmode": "verify-ca",
        "ca_certificate": CERTIFICATE + "\n",
        "connect_timeout": 10,
    }
    assert (done.name, done.password, done.version) == ("wh", "p", 3)
    assert "password" not in repr(done)
    trino = rendered("t", source(kind="trino", database="", options={"schema": "s"}), str)
    assert trino.options == {"schema": "s", "http_scheme": "https", "connect_timeout": 10}


@pytest.mark.parametrize(
    ("fields", "values", "words"),
    [
        ({"host": "${env}"}, {"env": "evil:1"}, "data source wh: host (${env}) holds a port"),
        ({"host": "${env}"}, {}, "names a parameter that the task does not have: env"),
        ({"host": "${env}"}, {"env": "${other}"}, "renders to a text with a placeholder"),
        ({"host": "${env}"}, {"env": ""}, "is required"),
        ({"database": "${d}"}, {"d": "x host=evil"}, "holds characters"),
        ({"user": "$${name}"}, {}, "renders to a text with a placeholder"),
        ({"options": {"oops": 1}}, {}, "options.oops is not an option"),
    ],
)
def test_what_does_not_render_to_a_usable_value_is_told_without_it(
    fields: dict[str, Any], values: dict[str, str], words: str
) -> None:
    with pytest.raises(UnusableDataSource) as raised:
        rendered("wh", source(**fields), replacing(**values))
    assert words in str(raised.value)
    assert "evil" not in str(raised.value)
    assert "shoal data-source set" in str(raised.value)


# -- names in params -------------------------------------------------------------------------------

Sql = Annotated[str, SourceName(frozenset({SourceKind.SQLITE}))]


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
