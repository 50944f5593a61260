"""SWITCH: choose what runs next by the values of parameters."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from shoal.core.logic import expressions
from shoal.core.logic.conditions import Targets
from shoal.core.task_types import LogicType, TaskParams


class Case(TaskParams):
    """``then`` runs if the expression ``when`` is the first true one."""

    when: str
    then: Targets = Field(min_length=1)

    @field_validator("when")
    @classmethod
    def _expression(cls, value: str) -> str:
        expressions.check(value)
        return value


class Params(TaskParams):
    """The first case whose expression is true chooses; ``default`` if none is."""

    cases: tuple[Case, ...] = Field(min_length=1)
    default: Targets = ()

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        always = set(self.default).intersection(*(case.then for case in self.cases))
        if always:
            raise ValueError(f"{', '.join(sorted(always))}: chosen in every case; take it out")
        return self


class Switch(LogicType[Params]):
    """Chooses by values."""

    Params = Params


def choose(params: Mapping[str, Any], parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the chosen tasks of a SWITCH task. Raises InvalidExpression."""
    checked = Params.model_validate(params)
    for case in checked.cases:
        if expressions.is_true(case.when, parameters):
            return case.then
    return checked.default
