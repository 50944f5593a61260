"""The task type PROCEDURE and its fields. The API imports it, so it imports little."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from shoal.core.definition.fields import Duration
from shoal.core.task_types import SourceName, TaskParams
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.sql.sql import MOST_ROWS, OnMore

KINDS = frozenset({"postgresql", "mariadb", "mysql"})
Argument = str | int | float | bool | None


class Committer(StrEnum):
    """Who commits."""

    TASK = "task"  # the task, when the routine has returned
    OWN = "own"  # the routine itself; what it leaves open is committed by the database


class Sets(StrEnum):
    """What becomes of the result sets."""

    NONE = "none"
    ROWS = "rows"  # JSON lists of objects: outputs `rows`, `rows_2`, …


class ProcedureParams(TaskParams):
    """Which routine a PROCEDURE task calls, with what, and what becomes of what it returns.

    Modes and types come from the catalogue of the database. Outputs are: each OUT and INOUT
    parameter by its name, `return_value` of a function, and the result sets.
    """

    data_source: Annotated[str, SourceName(kinds=KINDS)] = Field(
        min_length=1, description="Name of a data source of the project."
    )
    name: str = Field(
        min_length=1,
        max_length=500,
        description="A procedure or function, such as close_day or sales.close_day. Of several "
        "with one name, with the types of what goes in: sales.close_day(date, text).",
    )
    arguments: dict[str, Argument] = Field(
        default_factory=dict,
        description="Values by the names of the parameters, converted by the database to their "
        "types. A parameter without a name is called by its place: 1, 2, …",
    )
    transaction: Committer = Field(
        default=Committer.TASK,
        description="task: one transaction around the call. own: none, for routines that commit.",
    )
    result: Sets = Field(
        default=Sets.ROWS,
        description="What becomes of result sets. rows: outputs `rows`, `rows_2`, …; or none.",
    )
    max_rows: int = Field(
        default=MOST_ROWS, ge=1, description="At most so many rows of one result set."
    )
    on_more: OnMore = Field(
        default=OnMore.FAIL, description="If there are more: fail, or truncate."
    )
    statement_timeout: Duration | None = Field(
        default=None, description="How long the call may take, such as 30s or 10m."
    )
    idempotent: bool = Field(
        default=False,
        description="Running twice does no harm: the task is also retried when it is unknown "
        "whether it was committed.",
    )


class Procedure(ChildType[ProcedureParams]):
    """Calls a procedure or function of a data source, in a process of the attempt's own."""

    Params = ProcedureParams
    work = "shoal.worker.types.procedure.run:run"
    settles = True
