"""The task types that wait, and their fields. The API imports it, so it imports little."""

import re
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from shoal.core.definition.fields import Duration, ParameterName
from shoal.core.logic import expressions
from shoal.core.task_types import Script, SourceName
from shoal.worker.types.program import Program, placeholders_left
from shoal.worker.types.sql.statements.value_types import ValueType
from shoal.worker.types.wait.looks import LookParams, LookType

WILD = re.compile(r"[*?\[]")
REMOTE = ("s3://", "s3a://", "hdfs://", "webhdfs://")
WEB = ("http://", "https://")


class What(StrEnum):
    """Which entries of a file system count."""

    FILE = "file"
    FOLDER = "folder"
    ANY = "any"


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain the NUL character")
    return text


def has_placeholder(text: str) -> bool:
    """Whether a text is still to be rendered."""
    return bool(placeholders_left([text]))


def _absolute(text: str) -> str:
    if text.startswith(("/", "$")):
        if ".." in PurePosixPath(text).parts:
            raise ValueError("must not contain `..`; write where the file is")
        return text
    raise ValueError(
        f"{text[:100]!r} is not an absolute path of the worker, such as /data/in/*.csv"
    )


def _known_url(text: str) -> str:
    if text.startswith((*REMOTE, *WEB, "$")):
        return text
    raise ValueError(f"must begin with one of {', '.join((*WEB, *REMOTE))}")


def _moment(text: str) -> str:
    if not has_placeholder(text):
        moment_of(text)
    return text


def moment_of(text: str) -> datetime:
    """Return the time that ``newer_than`` names, perhaps without a zone. Raises ValueError."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text[:100]!r} is not a time; write 2026-11-21, 2026-11-21T06:00 or "
            "2026-11-21T06:00+01:00"
        ) from None


class WaitFileParams(LookParams):
    """What to look for, and what has to be true of it."""

    path: Annotated[str, AfterValidator(_no_nul), AfterValidator(_absolute)] | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="An absolute path on the worker; * ? [a-z] and ** stand for parts of names.",
    )
    url: Annotated[str, AfterValidator(_no_nul), AfterValidator(_known_url)] | None = Field(
        default=None,
        max_length=4096,
        description="Instead: http(s)://, or s3://, s3a://, hdfs://, webhdfs:// with * ? [a-z] **.",
    )
    what: What = Field(default=What.FILE, description="file, folder or any: what counts.")
    at_least: int = Field(default=1, ge=1, le=10_000, description="So many must be there.")
    min_size: int = Field(default=0, ge=0, description="Of each file, in bytes.")
    stable_for: Duration = Field(
        default=0.0, description="Not changed for so long, by the time of its last change."
    )
    newer_than: Annotated[str, AfterValidator(_moment)] | None = Field(
        default=None,
        max_length=100,
        description="Changed after this time, such as $[yyyy-MM-dd]; without an offset in the time "
        "zone of the run.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise ValueError("give exactly one of `path` and `url`")
        is_web = self.url is not None and self.url.startswith(WEB)
        if is_web and (self.what is not What.FILE or self.at_least != 1):
            raise ValueError("an http URL is one file: leave `what` and `at_least` out")
        wild = WILD.search(self.path or self.url or "")
        is_open = has_placeholder(self.path or self.url or "")
        if self.at_least > 1 and wild is None and not is_open:
            raise ValueError(f"`at_least` is {self.at_least}, and the path names one file")
        return self


def _expression(text: str) -> str:
    if text:
        expressions.check(text)
    return text


class WaitSqlParams(LookParams):
    """The query, and what has to be true of its first row."""

    data_source: Annotated[str, SourceName()] = Field(
        min_length=1, description="Name of a data source of the project."
    )
    sql: Program = Field(
        description="One query; the first value of its first row counts. ${x} is a bound value."
    )
    until: Annotated[Script, AfterValidator(_expression)] = Field(
        default="",
        description="An expression over `value`, the columns of the first row and the parameters, "
        "such as number(value) > 100. Default: there is a row, and its first value is not NULL, "
        "false, 0 or empty.",
    )
    types: dict[ParameterName, ValueType] = Field(
        default_factory=dict, description="Types of parameters that are not texts, by name."
    )
    statement_timeout: Duration = Field(
        default=60.0, gt=0, le=3_600, description="How long the query may run."
    )


class WaitFile(LookType[WaitFileParams]):
    """Waits for files, on the worker or behind a URL."""

    Params = WaitFileParams
    work = "shoal.worker.types.wait.file_work:run"


class WaitSql(LookType[WaitSqlParams]):
    """Waits until a query of a data source says so."""

    Params = WaitSqlParams
    work = "shoal.worker.types.wait.sql_work:run"
    settles = True
