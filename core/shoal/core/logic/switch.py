"""SWITCH: choose what runs next by the values of parameters."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from shoal.core.errors import LONGEST_REASON, ShoalError, shortened
from shoal.core.logic import expressions
from shoal.core.logic.conditions import Targets
from shoal.core.task_types import LogicType, TaskParams

MOST_CASES = 200
LONGEST_TOGETHER = 40_000
"""Characters of all expressions of a task: a master reads them all in one go."""


class InvalidSwitch(ShoalError):
    """A SWITCH task whose parameters cannot be read. Checked when a definition is saved."""


class Case(TaskParams):
    """``then`` runs if the expression ``when`` is the first true one."""

    when: str
    then: Targets = Field(min_length=1)

    @field_validator("when")
    @classmethod
    def _expression(cls, value: str) -> str:
        expressions.check(value)
        return value


class SwitchParams(TaskParams):
    """The first case whose expression is true chooses; ``default`` if none is."""

    cases: tuple[Case, ...] = Field(min_length=1, max_length=MOST_CASES)
    default: Targets = ()

    @field_validator("cases")
    @classmethod
    def _not_too_much(cls, cases: tuple[Case, ...]) -> tuple[Case, ...]:
        if sum(len(case.when) for case in cases) > LONGEST_TOGETHER:
            raise ValueError(f"the expressions together exceed {LONGEST_TOGETHER} characters")
        return cases

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        always = set(self.default).intersection(*(case.then for case in self.cases))
        if always:
            raise ValueError(f"{', '.join(sorted(always))}: chosen in every case; take it out")
        return self


class Switch(LogicType[SwitchParams]):
    """Chooses by values."""

    Params = SwitchParams


def choose(params: Mapping[str, Any], parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the chosen tasks of a SWITCH task. Raises InvalidExpression, InvalidSwitch."""
    try:
        checked = SwitchParams.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidSwitch(shortened(f"{where}: {first['msg']}", LONGEST_REASON)) from None
    for case in checked.cases:
        if expressions.is_true(case.when, parameters):
            return case.then
    return checked.default
