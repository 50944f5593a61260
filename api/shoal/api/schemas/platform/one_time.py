"""Bodies about signing in with a one-time code."""

from pydantic import Field, SecretStr

from shoal.api.schemas.common import Answer, RequestBody


class OneTimeCodeIn(RequestBody):
    """A code that was made a moment ago."""

    code: SecretStr = Field(min_length=1, max_length=200)


class OneTimeCodeOut(Answer):
    """A code, shown this once."""

    code: str
    valid_s: float = Field(description="Seconds from now.")
