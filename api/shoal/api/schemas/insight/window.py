"""The days that an answer is about."""

from datetime import date

from pydantic import BaseModel, Field

#: Of fields that are percentiles over several days.
OF_DAYS = (
    "Of several days: the mean of the days' percentiles, weighted by how many each day had; of one "
    "day exact."
)


class WindowOut(BaseModel):
    """The window, the window before, and up to when there are results. All null: there are none.

    Days are of UTC and both ends are included.
    """

    first: date | None
    last: date | None
    days: int = Field(description="How many days of the window have results.")
    before_first: date | None = Field(
        description="First day of the window before, which is as long."
    )
    before_last: date | None
    before_days: int = Field(description="How many days of that one have results.")
    until: date | None = Field(
        description="The newest day that has results of what this answer is made from; null: "
        "there are none yet: see docs/insight.md for how to make them."
    )
