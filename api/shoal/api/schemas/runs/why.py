"""Explanations."""

from pydantic import Field

from shoal.api.schemas.common import Answer
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.findings import Layer


class FindingOut(Answer):
    """What one layer says."""

    layer: Layer
    text: str = Field(description="In English.")
    code: Code = Field(description="What is said, for programs: docs/codes.md has them all.")
    arguments: dict[str, str | int | float | None] = Field(
        description="What the text says it of; of findings about a task of an instance its `task`."
    )
    waits: bool = Field(description="Whether it waits for this now; false: for information.")
    instance_id: int | None = Field(description="Another instance that the text speaks of.")
    task_instance_id: int | None = Field(description="Another attempt that the text speaks of.")


class WhyOut(Answer):
    """What an instance or an attempt waits for, from the outermost layer to the innermost."""

    instance_id: int
    task_instance_id: int | None
    task: str | None
    project: str
    workflow: str
    state: str = Field(description="Of the attempt, or of the instance.")
    findings: list[FindingOut]
