"""What a WAIT_SQL task is told. Imported by the API and the command line."""

from typing import Annotated

from pydantic import AfterValidator, Field

from shoal.core.definition.fields import Duration, ParameterName
from shoal.core.logic import expressions
from shoal.core.task_types import Script, SourceName
from shoal.worker.types.program import Program
from shoal.worker.types.sql.statements.value_types import ValueType
from shoal.worker.types.wait.looks import LookParams


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
