"""The task type SQL and its fields. The API imports it, so it imports little."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from shoal.core.definition.fields import Duration, ParameterName
from shoal.core.logic import expressions
from shoal.core.task_types import Script, SourceName, TaskParams
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.program import Program, ProgramFile, require_one
from shoal.worker.types.sql.statements.value_types import ValueType

MOST_ROWS = 10_000
LARGEST_SHEET = 1_048_575  # rows of a worksheet of Excel, without the header


class ResultKind(StrEnum):
    """What becomes of the rows of the last statement."""

    NONE = "none"
    VALUE = "value"  # the only value: output `value`
    ROW = "row"  # the only row: an output for each column
    ROWS = "rows"  # a JSON list of objects: output `rows`
    FILE = "file"  # a file in the attempt's folder: output `file`


class OnMore(StrEnum):
    """What happens when there are more rows than `max_rows`."""

    FAIL = "fail"
    TRUNCATE = "truncate"


class Transaction(StrEnum):
    """What is committed together."""

    TASK = "task"
    STATEMENT = "statement"


class FileFormat(StrEnum):
    """How a result is written, by the end of its file's name."""

    CSV = "csv"
    PARQUET = "parquet"
    XLSX = "xlsx"


def _expression(text: str) -> str:
    if text:
        expressions.check(text)
    return text


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain the NUL character")
    return text


FileName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.(?:csv|parquet|xlsx)$|^.*\$[{\[].*$")
]
DatabaseName = Annotated[str, AfterValidator(_no_nul), Field(min_length=1, max_length=500)]
Statements = Annotated[Script, AfterValidator(_no_nul)]


class SqlParams(TaskParams):
    """What a SQL task runs, and what becomes of its result.

    ``sql``, ``before`` and ``after`` hold any number of statements. ``${x}`` in them, bare or as a
    whole literal, is the task's parameter ``x`` as a bound value, never text of the statement.
    """

    data_source: Annotated[str, SourceName()] = Field(
        min_length=1, description="Name of a data source of the project."
    )
    sql: Program | None = Field(
        default=None,
        description="The statements. The last one's rows are the result; of a procedure's sets of "
        "rows the first.",
    )
    file: ProgramFile = None
    before: Statements = Field(default="", description="Statements that run before, all of them.")
    after: Statements = Field(
        default="",
        description="Statements that run at the end: on success before the commit, after a failure "
        "in a transaction of their own. Not when the task is killed.",
    )
    result: ResultKind = Field(
        default=ResultKind.NONE,
        description="none; value or row: outputs of the only row; rows: a JSON list; file.",
    )
    file_name: FileName = Field(
        default="result.csv",
        description="With `result: file`: its name. It ends with .csv, .parquet or .xlsx.",
    )
    max_rows: int | None = Field(
        default=None,
        ge=1,
        description="At most so many rows in the result. Default: 10,000 with `result: rows`, for "
        "a file as many as there are.",
    )
    on_more: OnMore = Field(
        default=OnMore.FAIL,
        description="If there are more: fail, or truncate (output `truncated`).",
    )
    preview_rows: int = Field(
        default=20, ge=0, le=1_000, description="Rows of each result that the log shows."
    )
    types: dict[ParameterName, ValueType] = Field(
        default_factory=dict,
        description="As what a parameter is bound, by its name: text (default), integer, float, "
        "decimal, boolean, date, time, timestamp.",
    )
    identifiers: dict[ParameterName, DatabaseName] = Field(
        default_factory=dict,
        description="Names of tables and columns: with {t: sales.orders}, ${t} is that name, "
        "quoted as the database does.",
    )
    transaction: Transaction = Field(
        default=Transaction.TASK,
        description="What is committed together: the whole task, or each statement by itself.",
    )
    read_only: bool = Field(default=False, description="Refuse statements that change anything.")
    statement_timeout: Duration | None = Field(
        default=None, description="How long one statement may run, such as 30s or 10m."
    )
    fail_if: Annotated[Script, AfterValidator(_expression)] = Field(
        default="",
        description="An expression over outputs and parameters, such as number(row_count) == 0. If "
        "it is true the task fails and nothing is committed.",
    )
    idempotent: bool = Field(
        default=False,
        description="Running twice does no harm: the task is also retried when it is unknown "
        "whether it was committed.",
    )
    separator: str = Field(
        default="",
        max_length=100,
        description="A text that ends a statement where it ends a line, such as ;; or //. For "
        "statements that are not taken apart for sure.",
    )

    @property
    def row_limit(self) -> int | None:
        """At most so many rows in the result; None: no limit."""
        if self.result is ResultKind.FILE and self.format is FileFormat.XLSX:
            return min(self.max_rows or LARGEST_SHEET, LARGEST_SHEET)
        if self.result is ResultKind.ROWS:
            return self.max_rows or MOST_ROWS
        return self.max_rows

    @property
    def format(self) -> FileFormat:
        """The format of the file."""
        return FileFormat(self.file_name.rpartition(".")[2])

    @model_validator(mode="after")
    def _one_meaning_each(self) -> Self:
        require_one(self.sql, self.file, "sql")
        if both := self.types.keys() & self.identifiers.keys():
            raise ValueError(f"{min(both)!r} is one of `identifiers`, so it has no type")
        if self.separator and not self.separator.strip():
            raise ValueError("`separator` is white space only")
        return self


class Sql(ChildType[SqlParams]):
    """Runs statements on a data source, in a process of the attempt's own."""

    Params = SqlParams
    work = "shoal.worker.types.sql.run:run"
    settles = True
