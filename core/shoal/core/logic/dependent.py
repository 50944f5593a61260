"""DEPENDENT: wait for runs of other workflows, found by logical time."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Self

from pydantic import Field, field_validator, model_validator

from shoal.core.definition.fields import Name
from shoal.core.logic import intervals
from shoal.core.task_types import LogicType, TaskParams


class IfMissing(StrEnum):
    """What an interval without any run means."""

    WAIT = "wait"
    FAIL = "fail"
    SKIP = "skip"  # the DEPENDENT task is skipped


class Dependency(TaskParams):
    """Exactly one of: ``workflow`` (an item), ``all``, ``any``."""

    workflow: Name | None = None
    project: Name | None = None  # None: that of this workflow
    task: Name | None = None  # None: the whole instance
    date: str | None = None  # a date value such as today, last1Days, lastMonday
    if_missing: IfMissing = IfMissing.WAIT
    all_: tuple["Dependency", ...] | None = Field(default=None, alias="all", min_length=1)
    any_: tuple["Dependency", ...] | None = Field(default=None, alias="any", min_length=1)

    @field_validator("date")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None:
            intervals.check(value)
        return value

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [one for one in (self.workflow, self.all_, self.any_) if one is not None]
        if len(given) != 1:
            raise ValueError("write exactly one of workflow, all, any")
        if self.workflow is not None and self.date is None:
            raise ValueError("date is required, for example today or last1Days")
        if self.workflow is None and (self.project or self.task or self.date):
            raise ValueError("project, task and date go with workflow")
        return self

    def items(self) -> "Iterator[Dependency]":
        """Yield the items in their order."""
        if self.workflow is not None:
            yield self
        for inner in (*(self.all_ or ()), *(self.any_ or ())):
            yield from inner.items()


class DependentParams(TaskParams):
    """What must have run."""

    when: Dependency


class Dependent(LogicType[DependentParams]):
    """Waits for runs of other workflows."""

    Params = DependentParams
