"""Results of jobs as they are."""

from datetime import date, datetime
from typing import Any

from pydantic import Field

from shoal.api.schemas.common import Answer, Page


class RollupOut(Answer):
    """A result: what one job has found about one day."""

    job: str
    day: date = Field(description="The day; of what looks back over weeks, as of which day it is.")
    rows: int | None = Field(
        description="Of all projects; null: the caller does not see the cluster."
    )
    stored_at: datetime = Field(description="When it came into the database.")


class RollupRowsOut(Answer):
    """The rows of one workflow in a result, or those that belong to no project."""

    project: str = Field(description="Empty: rows of the cluster.")
    workflow: str
    rows: list[dict[str, Any]] = Field(
        description="With the columns of docs/insight.md; times are ISO 8601, null: not known."
    )


class RollupRowsPage(Page[RollupRowsOut]):
    """A page of a result, by project and workflow."""

    job: str
    day: date | None = Field(description="Null: the job has no result yet.")
