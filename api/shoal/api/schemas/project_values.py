"""What a project's workflows share: parameters and secrets."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from shoal.api.schemas.common import TIME, Strict, example
from shoal.core.definition.fields import scalar_text

SHORTEST_SECRET = 4  # characters: a shorter one could not be told apart in a log
LONGEST_SECRET = 32 * 1024  # bytes: it becomes an environment variable
LONGEST_VALUE = 1024 * 1024  # characters


class ParameterOut(BaseModel):
    """One parameter of a project."""

    model_config = example({"project": "flights", "name": "bucket", "value": "s3://flights"})

    project: str
    name: str
    value: str = Field(description="A definition: placeholders are not rendered.")


class ParameterIn(Strict):
    """The new value of a parameter."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"value": "s3://flights"}]}
    )

    value: Annotated[
        str, BeforeValidator(scalar_text, json_schema_input_type=str | int | float | bool)
    ] = Field(max_length=LONGEST_VALUE, description="A definition: it may hold ${…} and $[…].")


class SecretOut(BaseModel):
    """A secret, without its value: only tasks ever get that."""

    model_config = example({"name": "db_password", "created_at": TIME, "updated_at": TIME})

    name: str
    created_at: datetime
    updated_at: datetime


class SecretIn(Strict):
    """The new value of a secret."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"value": "correct horse battery"}]}
    )

    value: SecretStr = Field(
        json_schema_extra={"minLength": SHORTEST_SECRET},
        description="At least 4 characters, at most 32 KiB in UTF-8.",
    )


def secret_problems(value: str) -> Iterator[str]:
    """Yield what makes a secret value unusable; the value itself is in none of the texts."""
    if len(value.strip()) < SHORTEST_SECRET:
        yield f"has less than {SHORTEST_SECRET} characters, so it could not be masked in logs"
    if len(value.encode("utf-8", "surrogatepass")) > LONGEST_SECRET:
        yield f"has more than {LONGEST_SECRET:,} bytes; keep large secrets in a store of their own"
    if any("\ud800" <= character <= "\udfff" for character in value):
        yield "holds half of a character"
