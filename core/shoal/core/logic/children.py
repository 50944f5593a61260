"""SUB_WORKFLOW and MAP: run other workflows as part of this one."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field, StrictInt, field_validator

from shoal.core.definition.fields import Name, ParameterName, scalar_text
from shoal.core.errors import ShoalError
from shoal.core.task_types import LogicType, TaskParams
from shoal.core.untrusted import read_json

MOST_ITEMS = 1_000


class _Child(TaskParams):
    """Which workflow runs, and with what."""

    workflow: Name
    project: Name | None = None  # None: that of the parent
    version: StrictInt | None = Field(default=None, ge=1)  # None: the newest when it starts
    parameters: dict[ParameterName, str] = Field(default_factory=dict)

    @field_validator("parameters", mode="before")
    @classmethod
    def _scalars_as_text(cls, value: Any) -> Any:
        return {k: scalar_text(v) for k, v in value.items()} if isinstance(value, dict) else value


class SubWorkflowParams(_Child):
    """One run of another workflow."""


class MapParams(_Child):
    """One run of another workflow for each item."""

    items: list[str | int | float | bool] | str  # a text renders to a JSON list
    parameter: ParameterName = "item"
    parallel: StrictInt = Field(default=10, ge=1, le=MOST_ITEMS)

    @field_validator("items")
    @classmethod
    def _not_too_many(cls, value: Any) -> Any:
        if isinstance(value, list) and len(value) > MOST_ITEMS:
            raise ValueError(f"{len(value)} items, at most {MOST_ITEMS} are allowed")
        return value


class SubWorkflow(LogicType[SubWorkflowParams]):
    """Runs another workflow."""

    Params = SubWorkflowParams


class Map(LogicType[MapParams]):
    """Runs another workflow once for each item of a list."""

    Params = MapParams


class InvalidItems(ShoalError, ValueError):
    """What ``items`` renders to is not a list of items."""


def items_of(rendered: str | Sequence[Any]) -> list[str]:
    """Return the items as text; JSON values that are not scalars stay JSON. Raises InvalidItems."""
    items: Any = rendered
    if isinstance(rendered, str):
        try:
            items = read_json(rendered)
        except ValueError as error:
            raise InvalidItems(
                f"items must be a JSON list, got {rendered[:80]!r}: {error}"
            ) from None
    if not isinstance(items, list):
        raise InvalidItems(f"items must be a JSON list, got {type(items).__name__}")
    if len(items) > MOST_ITEMS:
        raise InvalidItems(f"{len(items)} items, at most {MOST_ITEMS} are allowed")
    return [_text(item) for item in items]


def _text(item: Any) -> str:
    if isinstance(item, str | bool | int | float):
        return str(scalar_text(item))
    return json.dumps(item, ensure_ascii=False)
