"""CONDITIONS: choose what runs next by the results of upstream tasks."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from shoal.core.definition.fields import Name
from shoal.core.task_types import LogicType, TaskParams


class ConditionOutcome(StrEnum):
    """How an upstream task ended, as conditions ask for it."""

    SUCCESS = "success"
    FAILURE = "failure"  # failed, killed or lost for good
    SKIPPED = "skipped"
    DONE = "done"  # any of them


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Targets = Annotated[
    tuple[Name, ...], BeforeValidator(_as_list, json_schema_input_type=str | list[str])
]


class Condition(TaskParams):
    """Exactly one of: ``task`` (with ``is``), ``all``, ``any``, ``not``."""

    task: Name | None = None
    is_: ConditionOutcome | None = Field(default=None, alias="is")
    all_: tuple["Condition", ...] | None = Field(default=None, alias="all", min_length=1)
    any_: tuple["Condition", ...] | None = Field(default=None, alias="any", min_length=1)
    not_: "Condition | None" = Field(default=None, alias="not")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [one for one in (self.task, self.all_, self.any_, self.not_) if one is not None]
        if len(given) != 1:
            raise ValueError("write exactly one of task, all, any, not")
        if (self.task is None) != (self.is_ is None):
            raise ValueError("task and is go together: {task: a, is: success}")
        return self

    def holds(self, outcome_of: Callable[[str], ConditionOutcome]) -> bool:
        """Evaluate; ``outcome_of`` says how a task ended: SUCCESS, FAILURE or SKIPPED."""
        if self.task is not None:
            return self.is_ is ConditionOutcome.DONE or outcome_of(self.task) is self.is_
        if self.all_ is not None:
            return all(one.holds(outcome_of) for one in self.all_)
        if self.any_ is not None:
            return any(one.holds(outcome_of) for one in self.any_)
        assert self.not_ is not None
        return not self.not_.holds(outcome_of)


class ConditionsParams(TaskParams):
    """``then`` runs if the condition holds, ``else`` if not; both name direct downstream tasks."""

    when: Condition
    then: Targets = ()
    else_: Targets = Field(default=(), alias="else")

    @model_validator(mode="after")
    def _choose_something(self) -> Self:
        if not self.then and not self.else_:
            raise ValueError("name at least one task in then or else")
        if both := set(self.then) & set(self.else_):
            raise ValueError(f"{', '.join(sorted(both))}: in then and in else; it would always run")
        return self


class Conditions(LogicType[ConditionsParams]):
    """Chooses by results."""

    Params = ConditionsParams


def choose(
    params: Mapping[str, Any], outcome_of: Callable[[str], ConditionOutcome]
) -> tuple[str, ...]:
    """Return the chosen tasks of a CONDITIONS task."""
    checked = ConditionsParams.model_validate(params)
    return checked.then if checked.when.holds(outcome_of) else checked.else_
