"""Bodies about signing in with a one-time code."""

from pydantic import BaseModel, Field, SecretStr

from shoal.api.schemas.common import Strict, body_example, example

_CODE = "PSkP1Yx0c5v2nQWqv1rJ3mB8tHqYtXc0u4mC6F2nV9A"


class OneTimeCodeIn(Strict):
    """A code that was made a moment ago."""

    model_config = body_example({"code": _CODE})

    code: SecretStr = Field(min_length=1, max_length=200)


class OneTimeCodeOut(BaseModel):
    """A code, shown this once."""

    model_config = example({"code": _CODE, "valid_s": 60.0})

    code: str
    valid_s: float = Field(description="Seconds from now.")
