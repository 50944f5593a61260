"""What was used."""

from pydantic import Field

from shoal.api.schemas.common import Answer, Page
from shoal.api.schemas.insight.trends import CostOut
from shoal.api.schemas.insight.window import WindowOut
from shoal.core.insight.costs import CostBy


class CostGroupOut(Answer):
    """What a project, workflow, task or label has used; what does not name it is null."""

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

    by: CostBy
    total: CostOut = Field(description="Of the window.")
    before: CostOut = Field(description="Of the window before.")
