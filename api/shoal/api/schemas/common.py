"""Base classes and field types that all schemas share."""

from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from shoal.core.runs.why.codes import Code

T = TypeVar("T")


class Answer(BaseModel):
    """Base of answers: read from the attributes of a record."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of_record(cls, record: object, /, **others: Any) -> Self:
        """Return what is shown of a record: ``others``, and all else from equally named attributes.

        Raises AttributeError if it lacks one, ValidationError if a value does not fit.
        """
        names = cls.model_fields.keys() - others.keys()
        return cls(**{name: getattr(record, name) for name in names}, **others)


class Page(Answer, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(
        default=None, description="Cursor of the next page; null on the last one."
    )


class RequestBody(BaseModel):
    """Base of request bodies: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class SaidOut(Answer):
    """A sentence, and what a program needs to say it in another language."""

    code: Code = Field(description="What is said. Codes and their arguments keep their meaning.")
    arguments: dict[str, str | int | float | None]
    text: str = Field(description="In English.")

    @classmethod
    def of(cls, said: Any) -> Self | None:
        """Return what is shown of it; None: nothing is said."""
        return None if said is None else cls.model_validate(said)
