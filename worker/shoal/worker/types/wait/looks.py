"""What all types have in common that look again and again."""

from typing import Annotated, ClassVar, NoReturn, Self, TypeVar

from pydantic import Field, model_validator

from shoal.core.definition.fields import Duration
from shoal.core.task_types import TaskParams
from shoal.core.timing.poll_interval import LONGEST_S, SHORTEST_S, interval_s
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.child.outcome import NOT_YET, NotYet
from shoal.worker.types.child.work import Work

_LONGEST_BACK_OFF_S = 900.0  # unless the task says another

Interval = Annotated[Duration, Field(ge=SHORTEST_S, le=LONGEST_S)]


class LookParams(TaskParams):
    """When a task looks again."""

    every: Interval = Field(default=60.0, description="Between two looks, such as 30s or 5m.")
    back_off: float = Field(
        default=1.0,
        ge=1,
        le=100,
        description="The factor by which that grows from look to look; 1: it does not.",
    )
    every_max: Interval | None = Field(
        default=None,
        description="The longest time between two looks. Default: 15m, or `every` if it is longer.",
    )

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.every_max is not None and self.every_max < self.every:
            raise ValueError("`every_max` is shorter than `every`")
        return self

    def interval_s(self, looks: int) -> float:
        """Return the seconds from look number ``looks`` (from 0) to the next one."""
        longest_s = self.every_max or max(self.every, _LONGEST_BACK_OFF_S)
        return interval_s(self.every, self.back_off, longest_s, looks)


P = TypeVar("P", bound=LookParams)


class LookType(ChildType[P]):
    """A type whose attempts are looks: ``work`` raises NotYet by ``not_yet``."""

    not_yet_exit_code: ClassVar[int | None] = NOT_YET


def not_yet(work: Work[P], answer: str, at_the_latest_s: float | None = None) -> NoReturn:
    """End a look that has not found what the task waits for. ``answer``: what there is instead.

    ``at_the_latest_s``: in so many seconds it is worth a look, if the next one is later.
    """
    again_s = work.params.interval_s(work.looks)
    if at_the_latest_s is not None:
        again_s = min(again_s, max(at_the_latest_s, SHORTEST_S))
    raise NotYet(answer, again_s=again_s)
