"""What all schemas share: pages, strict bodies, examples."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

T = TypeVar("T")
TIME = "2026-11-21T06:00:00Z"
PriorityName = Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside of the years 1 to 9999 in UTC") from None


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]


def example(value: Mapping[str, Any]) -> ConfigDict:
    """Return the configuration of a response model with an example."""
    return ConfigDict(json_schema_extra={"examples": [dict(value)]}, from_attributes=True)


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(
        default=None, description="Cursor of the next page; null on the last one."
    )


class Strict(BaseModel):
    """Base of request bodies: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")
