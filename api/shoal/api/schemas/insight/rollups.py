"""Results of jobs as they are."""

from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, Field

from shoal.api.schemas.common import TIME, Page, example

_RESULT = {"job": "workflow_days", "day": "2026-11-21", "rows": 1000, "stored_at": TIME}
_ROWS: dict[str, Any] = {
    "project": "flights",
    "workflow": "daily",
    "rows": [{"runs": 1, "succeeded": 1, "duration_p50": 480.0}],
}


class RollupOut(BaseModel):
    """A result: what one job has found about one day."""

    model_config = example(_RESULT)

    job: str
    day: date = Field(description="The day; of what looks back over weeks, as of which day it is.")
    rows: int | None = Field(
        description="Of all projects; null: the caller does not see the cluster."
    )
    stored_at: datetime = Field(description="When it came into the database.")


class RollupRowsOut(BaseModel):
    """The rows of one workflow in a result, or those that belong to no project."""

    model_config = example(_ROWS)

    project: str = Field(description="Empty: rows of the cluster.")
    workflow: str
    rows: list[dict[str, Any]] = Field(
        description="With the columns of docs/insight.md; times are ISO 8601, null: not known."
    )


class RollupRowsPage(Page[RollupRowsOut]):
    """A page of a result, by project and workflow."""

    model_config = example(
        {"job": "workflow_days", "day": "2026-11-21", "items": [_ROWS], "next": None}
    )

    job: str
    day: date | None = Field(description="Null: the job has no result yet.")
