"""What a project's workflows share: parameters and secrets."""

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.checks.secrets import SHORTEST_SECRET
from shoal.core.definition.fields import scalar_text
from shoal.runtime.secret_stores.reference import LONGEST as LONGEST_REFERENCE

LONGEST_VALUE = 1024 * 1024  # characters


class ParameterOut(Answer):
    """One parameter of a project."""

    project: str
    name: str
    value: str = Field(description="A definition: placeholders are not rendered.")


class ParameterIn(RequestBody):
    """The new value of a parameter."""

    value: Annotated[
        str, BeforeValidator(scalar_text, json_schema_input_type=str | int | float | bool)
    ] = Field(max_length=LONGEST_VALUE, description="A definition: it may hold ${…} and $[…].")


class SecretOut(Answer):
    """A secret, without its value: only tasks ever get that."""

    name: str
    reference: str | None = Field(
        description="Where it is, if it is kept in another store; null: it is encrypted here."
    )
    created_at: datetime
    updated_at: datetime


class SecretIn(RequestBody):
    """The new value of a secret, or where it is kept: one of the two."""

    value: SecretStr = Field(
        default=SecretStr(""),
        json_schema_extra={"minLength": SHORTEST_SECRET},
        description="At least 4 characters, at most 32 KiB in UTF-8. It is stored encrypted.",
    )
    reference: str = Field(
        default="",
        max_length=LONGEST_REFERENCE,
        description="`STORE:PATH#FIELD`, in a store that the administrator has set up, on a path "
        "that is open to the project. It is read each time that a task needs it.",
    )


class SecretTestOut(Answer):
    """Whether a secret could be given to a task now."""

    ok: bool
    text: str = Field(description="Where it was read, or why it cannot be; never the value.")
    took_s: float = Field(description="Seconds.")
