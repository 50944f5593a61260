"""What people get wrong in tasks, and the page that says what happens then."""

import getpass
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.worker.types.spark.command import find_spark

# One that is there; what is in it does not matter.
_SOME_JAR = str(next((find_spark() / "jars").glob("commons-lang3-*.jar")))


@dataclass(frozen=True)
class Bad:
    """One mistake: of which type, in words, and the params that have it."""

    type: str
    mistake: str
    params: Mapping[str, Any]
    parameters: Mapping[str, str] | None = None
    environment: str | None = None

    def task(self, number: int) -> dict[str, Any]:
        """Return the task of a workflow."""
        named = {} if self.environment is None else {"environment": self.environment}
        return {
            **named,
            "name": f"t{number}",
            "type": self.type,
            "params": dict(self.params),
            "parameters": dict(self.parameters or {}),
            "retries": 1,
            "retry_delay": "100ms",
        }


@dataclass(frozen=True)
class Happened:
    """What became of it. ``attempts`` is 0 if the definition was refused."""

    state: str
    attempts: int
    reason: str


def _sql(mistake: str, sql: str, source: str = "warehouse", **more: Any) -> Bad:
    parameters = more.pop("parameters", None)
    return Bad("SQL", mistake, {"data_source": source, "sql": sql, **more}, parameters)


def _checked(mistake: str, *checks: dict[str, Any]) -> Bad:
    params = {"data_source": "warehouse", "table": "orders", "checks": list(checks)}
    return Bad("DATA_QUALITY", mistake, params)


def _ssh(mistake: str, source: str, script: str = "true") -> Bad:
    return Bad("SSH", mistake, {"data_source": source, "script": script})


_ORDERS = {"data_source": "warehouse", "sql": "select count(*) from orders"}


def _flink(mistake: str, source: str, **params: Any) -> Bad:
    return Bad("FLINK", mistake, {"data_source": source, "jar": "/no/job.jar", **params})


def _container(mistake: str, **more: Any) -> Bad:
    return Bad("CONTAINER", mistake, {"engine": "docker", "image": "etl/load:1", **more})


#: Refused when the workflow is published.
REFUSED: Sequence[Bad] = (
    Bad("SHEL", "a type that is none", {"script": "true"}),
    Bad("SHELL", "a field that is none", {"scrip": "true"}),
    Bad("SHELL", "nothing to run", {"script": " "}),
    Bad("SHELL", "a placeholder that is none", {"script": "echo $[nonsense(]"}),
    Bad("SHELL", "two programs", {"script": "true", "file": "etl/run.sh"}),
    Bad("SHELL", "a path that leads outside", {"file": "../run.sh"}),
    _sql("a value that is none of the choices", "SELECT 1", result="all"),
    _sql("a secret in a program", "SELECT '${secret.A}'"),
    _checked("a check that is none", {"check": "nulls", "column": "id"}),
    Bad("HTTP", "an address that is none", {"url": "example.org"}),
    Bad("WAIT_FILE", "a path that is not absolute", {"path": "in/*.csv"}),
    Bad("WAIT_FILE", "two places", {"path": "/data/x", "url": "https://example.org/x"}),
    Bad("WAIT_SQL", "a condition that is none", {**_ORDERS, "until": "value >"}),
    _container("a secret in a command", command=["load", "${secret.A}"]),
    _container("a field of another engine", namespace="etl"),
    Bad("SPARK", "too little memory", {"script": "x", "driver_memory": "64m"}),
    Bad("SPARK", "a setting that loads code", {"script": "x", "conf": {"spark.plugins": "a.B"}}),
    _flink("a setting that loads code", "flows", conf={"pipeline.jars": "/jobs/x.jar"}),
    _flink("a savepoint nobody finds", "flows", savepoint="savepoint-1"),
    Bad("PYTHON", "an environment that is not there", {"script": "x"}, environment="no_python"),
    Bad("PYTHON", "one of other worker groups", {"script": "x"}, environment="of_gpu"),
    Bad("HTTP", "an environment", {"url": "http://a/"}, environment="no_pythons"),
)

#: Published, and seen when the task runs.
RUN: Sequence[Bad] = (
    Bad("SHELL", "an exit status", {"script": "exit 3"}),
    Bad("SHELL", "a program that is not there", {"script": "no-such-program"}),
    Bad("SHELL", "a resource that is not there", {"file": "etl/rum.sh"}),
    Bad("PYTHON", "a syntax error", {"script": "print("}),
    Bad("PYTHON", "an exception", {"script": "{}['a']"}),
    Bad("PYTHON", "an interpreter that is missing", {"script": "x"}, environment="no_pythons"),
    Bad("SHELL", "a setup that fails", {"script": "true"}, environment="bad_setup"),
    _sql("a data source that is not there", "SELECT 1", "warehose"),
    _sql("a server that does not answer", "SELECT 1", "closed"),
    _sql("a wrong password", "SELECT 1", "refused"),
    _sql("a syntax error", "SELEC 1"),
    _sql("a table that is not there", "SELECT * FROM ordrs"),
    _sql("a parameter that is not there", "SELECT ${dy}", parameters={"day": "2026-01-31"}),
    _sql("a value of another type", "SELECT ${n}", types={"n": "integer"}, parameters={"n": "ten"}),
    _sql("no row where one is wanted", "SELECT 1 WHERE false", result="value"),
    _sql("a statement that takes too long", "SELECT pg_sleep(60)", statement_timeout="200ms"),
    Bad("PROCEDURE", "a routine that is not there", {"data_source": "warehouse", "name": "close"}),
    _checked("a column that is not there", {"check": "not_null", "column": "costumer"}),
    _checked("rows that fail", {"check": "range", "column": "amount", "min": 0}),
    Bad("HTTP", "the worker's own machine", {"url": "http://127.0.0.1:9/"}),
    Bad("WAIT_FILE", "a storage that is not allowed", {"url": "s3://bucket/in/*"}),
    Bad("WAIT_FILE", "the worker's own machine", {"url": "http://127.0.0.1:9/x"}),
    Bad("WAIT_SQL", "something that is not a query", {**_ORDERS, "sql": "delete from orders"}),
    Bad(
        "WAIT_SQL", "a column that is not there", {**_ORDERS, "sql": "select nonsense from orders"}
    ),
    Bad("HTTP", "a host that is not there", {"url": "http://nowhere.invalid/"}),
    _ssh("a server that does not answer", "closed_host"),
    _ssh("a host with another key", "other_host"),
    _ssh("a user who may not", "refused_host"),
    _ssh("an exit status", "farm", "exit 3"),
    Bad("SSH", "a resource that is not there", {"data_source": "farm", "file": "etl/rum.sh"}),
    _container("a worker without the engine"),
    _container("a worker without Kubernetes", engine="kubernetes"),
    Bad("MR", "a JAR file that is not there", {"jar": "/no/job.jar"}),
    _flink("a JAR file that is not there", "closed_flink"),
    _flink("a cluster that does not answer", "closed_flink", jar=_SOME_JAR),
    Bad("SPARK", "a syntax error", {"script": "print(", "master": "local[1]"}),
    Bad("SPARK", "a file that is not there", {"application": "/no/job.py", "master": "local[1]"}),
)


def page(refused: Iterable[tuple[Bad, Happened]], run: Iterable[tuple[Bad, Happened]]) -> str:
    """Return the tables of the page."""
    return "\n".join(
        [
            "## Refused when the workflow is published",
            "",
            "| Type | What is wrong | What it says |",
            "| --- | --- | --- |",
            *(f"| {bad.type} | {bad.mistake} | {_said(one)} |" for bad, one in refused),
            "",
            "## Seen when the task runs",
            "",
            "| Type | What is wrong | State | Retried | What it says |",
            "| --- | --- | --- | --- | --- |",
            *_lines(run),
        ]
    )


def _lines(run: Iterable[tuple[Bad, Happened]]) -> Iterator[str]:
    for bad, one in run:
        retried = "yes" if one.attempts > 1 else "no"
        yield f"| {bad.type} | {bad.mistake} | {one.state} | {retried} | {_said(one)} |"


def _said(one: Happened) -> str:
    """Return the reason as it is on every machine."""
    text = re.sub(r"(127\.0\.0\.1:|port )\d+", r"\1PORT", one.reason)
    text = re.sub(r"/\S+ ?\S*/(script\.sh|bin/python)\b", r"…/\1", text)
    text = re.sub(r"(ssh-ed25519|AAAA)[A-Za-z0-9+/ ]{20,}", "ssh-ed25519 AAAA…", text)
    text = re.sub(r"20\d\d-\d\d-\d\d [\d:]{8} UTC", "TIME", text)
    text = re.sub(rf"\b{getpass.getuser()}\b", "etl", text)
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
