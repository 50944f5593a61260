"""What was used."""

from typing import Any

from pydantic import BaseModel, Field

from shoal.api.schemas.common import Page, example
from shoal.api.schemas.insight.trends import COST, CostOut
from shoal.api.schemas.insight.window import WINDOW, WindowOut
from shoal.core.insight.costs import CostBy

_GROUP: dict[str, Any] = {
    "project": "flights",
    "workflow": "daily",
    "task": None,
    "label": None,
    "value": None,
    "now": COST,
    "before": COST,
    "share": 0.31,
}


class CostGroupOut(BaseModel):
    """What a project, workflow, task or label has used; what does not name it is null."""

    model_config = example(_GROUP)

    project: str | None
    workflow: str | None
    task: str | None
    label: str | None = Field(description="The key of a label of runs.")
    value: str | None = Field(description="Its value.")
    now: CostOut
    before: CostOut
    share: float | None = Field(
        description="Of the seconds of slots of all that the caller sees. Labels may add up to "
        "more than 1, as a run can have several."
    )


class CostsPage(WindowOut, Page[CostGroupOut]):
    """A page of costs, the most seconds of slots first."""

    model_config = example(
        {
            **WINDOW,
            "by": "workflow",
            "total": COST,
            "before": COST,
            "items": [_GROUP],
            "next": None,
        }
    )

    by: CostBy
    total: CostOut = Field(description="Of the window.")
    before: CostOut = Field(description="Of the window before.")
