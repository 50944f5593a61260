"""The task type DATA_QUALITY and its fields. The API imports it, so it imports little."""

import re
from abc import ABC, abstractmethod
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from shoal.core.definition.fields import Duration, ParameterName, Zone
from shoal.core.task_types import SourceName, TaskParams, Verbatim
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.program import Program
from shoal.worker.types.sql.sql import DatabaseName, Statements
from shoal.worker.types.sql.statements.value_types import ValueType

MOST_CHECKS = 200
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


class OnFailure(StrEnum):
    """What a check that does not hold means for the task."""

    BLOCK = "block"  # it fails
    WARN = "warn"  # it succeeds, and says so


def _share(value: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, int | float) and value < 0):
        raise ValueError("must be a number of 0 or more, or a share such as 0.5%")
    if isinstance(value, str) and not (
        (found := _SHARE.fullmatch(value)) and float(found[1]) <= 100
    ):
        raise ValueError(f"{value!r} is neither a number nor a share such as 0.5%")
    return value


def part_of(share: str | int | float, whole: Decimal) -> Decimal:
    """Return ``share`` as a number: it is one, or so many percent of ``whole``."""
    if isinstance(share, str):
        found = _SHARE.fullmatch(share)
        assert found is not None
        return abs(whole) * Decimal(found[1]) / 100
    return Decimal(str(share))


Share = Annotated[int | float | str, BeforeValidator(_share)]
Limit = StrictInt | StrictFloat | StrictStr  # a text may be ${parameter}


class _Check(BaseModel, ABC):
    """What all checks have. ``name`` is what people read; without it, what is checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(default="", max_length=100)
    on_failure: OnFailure | None = Field(
        default=None, description="Default: the value of the task."
    )

    @abstractmethod
    def described(self) -> str:
        """Return what is checked, in words."""

    @property
    def title(self) -> str:
        """The name that people read."""
        return self.name or self.described()


class _Between(BaseModel):
    """One of two limits at least, or both; they are allowed themselves."""

    min: Limit | None = None
    max: Limit | None = None

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("give min, max or both")
        return self

    def limits(self) -> str:
        """Return the limits, in words."""
        if self.min is None:
            return f"at most {self.max}"
        if self.max is None:
            return f"at least {self.min}"
        return f"{self.min} to {self.max}"


class RowCheck(_Check):
    """A check that each row passes or fails. ``at_most`` rows may fail."""

    at_most: Share = Field(default=0, description="Rows that may fail: a number, or such as 0.5%.")


class NotNull(RowCheck):
    """A column has a value."""

    check: Literal["not_null"]
    column: DatabaseName

    def described(self) -> str:
        """See _Check."""
        return f"{self.column} is not null"


class Unique(RowCheck):
    """No two rows have the same values. Rows with NULL among them are left out, as SQL does."""

    check: Literal["unique"]
    columns: Annotated[tuple[DatabaseName, ...], Field(min_length=1, max_length=20)]

    def described(self) -> str:
        """See _Check."""
        return f"{', '.join(self.columns)} is unique"


class Range(RowCheck, _Between):
    """A value lies between limits. NULL does: ``not_null`` is for that."""

    check: Literal["range"]
    column: DatabaseName

    def described(self) -> str:
        """See _Check."""
        return f"{self.column} is {self.limits()}"


class Accepted(RowCheck):
    """A value is one of a list. NULL passes."""

    check: Literal["accepted"]
    column: DatabaseName
    values: Annotated[tuple[StrictBool | Limit, ...], Field(min_length=1, max_length=500)]

    def described(self) -> str:
        """See _Check."""
        return f"{self.column} is one of {len(self.values)} values"


class Matches(RowCheck):
    """A text holds a match of a regular expression, as the database understands it. NULL passes."""

    check: Literal["matches"]
    column: DatabaseName
    pattern: Annotated[str, Field(min_length=1, max_length=1_000)]

    def described(self) -> str:
        """See _Check."""
        return f"{self.column} matches {self.pattern}"


class Holds(RowCheck):
    """A condition of SQL holds for each row. A condition that is NULL passes, as CHECK does."""

    check: Literal["holds"]
    condition: Program

    def described(self) -> str:
        """See _Check."""
        return " ".join(self.condition.split())[:80]


class Rows(_Check, _Between):
    """There are so many rows."""

    check: Literal["rows"]

    def described(self) -> str:
        """See _Check."""
        return f"{self.limits()} rows"


class Fresh(_Check):
    """The newest row is not older than ``within``."""

    check: Literal["fresh"]
    column: DatabaseName = Field(description="A time, a date, or seconds since 1970 in UTC.")
    within: Annotated[Duration, Field(gt=0)]
    timezone: Zone = Field(default="UTC", description="Of times that name no zone.")

    def described(self) -> str:
        """See _Check."""
        return f"{self.column} is fresh"


class Value(_Check, _Between):
    """A query of your own gives one value, which lies between limits."""

    check: Literal["value"]
    sql: Program

    def described(self) -> str:
        """See _Check."""
        return " ".join(self.sql.split())[:80]


class Same(_Check):
    """A figure is the same in another table, which may be in another data source."""

    check: Literal["same"]
    table: DatabaseName = Field(description="The other table.")
    data_source: Annotated[str, SourceName()] | None = Field(
        default=None, description="Where it is; default: the value of the task."
    )
    where: Statements = Field(default="", description="Which of its rows; default: all.")
    measure: Program = Field(default="count(*)", description="What is compared, such as sum(a).")
    tolerance: Share = Field(default=0, description="A number, or such as 1% of the other figure.")

    def described(self) -> str:
        """See _Check."""
        return f"{' '.join(self.measure.split())[:60]} equals its value in {self.table}"


Check = Annotated[
    NotNull | Unique | Range | Accepted | Matches | Holds | Rows | Fresh | Value | Same,
    Field(discriminator="check"),
]


def _told_apart(checks: tuple[Any, ...]) -> tuple[Any, ...]:
    titles = [check.title for check in checks]
    if twice := [title for title in titles if titles.count(title) > 1]:
        raise ValueError(f"two checks are called {twice[0]!r}: give each a name of its own")
    return checks


class DataQualityParams(TaskParams):
    """What must be true of a table, and what happens when it is not.

    ``${x}`` in SQL is a bound value, never text of the statement; in limits, values and patterns
    it is put in.
    """

    data_source: Annotated[str, SourceName()] = Field(
        min_length=1, description="Name of a data source of the project."
    )
    table: DatabaseName = Field(description="A table or view, such as sales.orders.")
    where: Statements = Field(
        default="", description="Which rows: a condition of SQL; default: all."
    )
    types: dict[ParameterName, ValueType] = Field(
        default_factory=dict,
        description="As what a parameter is bound, by its name; default: text.",
    )
    checks: Annotated[
        tuple[Check, ...],
        Verbatim(),
        AfterValidator(_told_apart),
        Field(min_length=1, max_length=MOST_CHECKS),
    ]
    on_failure: OnFailure = Field(
        default=OnFailure.BLOCK, description="A check that does not hold fails the task, or warns."
    )
    failing_rows: int = Field(
        default=20, ge=0, le=1_000, description="Rows that the log shows of each check."
    )
    hide: tuple[DatabaseName, ...] = Field(
        default=(), description="Columns that the log does not show."
    )
    statement_timeout: Duration | None = Field(
        default=None, description="How long one query may run, such as 30s or 10m."
    )


class DataQuality(ChildType[DataQualityParams]):
    """Judges the rows of a table, in a process of the attempt's own. It changes nothing."""

    Params = DataQualityParams
    work = "shoal.worker.types.quality.run:run"
    settles = True
