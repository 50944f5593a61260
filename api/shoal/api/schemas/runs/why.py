"""Explanations."""

from pydantic import BaseModel, Field

from shoal.api.schemas.common import example
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.findings import Layer

_FINDING = {
    "layer": "queue",
    "text": "it is number 3 of 12 in the queue of worker group 'default'",
    "code": "queue.place",
    "arguments": {"group": "default", "place": 3, "depth": 12, "is_at_least": 0},
    "waits": True,
    "instance_id": None,
    "task_instance_id": None,
}


class FindingOut(BaseModel):
    """What one layer says."""

    model_config = example(_FINDING)

    layer: Layer
    text: str = Field(description="In English.")
    code: Code = Field(description="What is said, for programs: docs/codes.md has them all.")
    arguments: dict[str, str | int | float | None] = Field(
        description="What the text says it of; of findings about a task of an instance its `task`."
    )
    waits: bool = Field(description="Whether it waits for this now; false: for information.")
    instance_id: int | None = Field(description="Another instance that the text speaks of.")
    task_instance_id: int | None = Field(description="Another attempt that the text speaks of.")


class WhyOut(BaseModel):
    """What an instance or an attempt waits for, from the outermost layer to the innermost."""

    model_config = example(
        {
            "instance_id": 17,
            "task_instance_id": 91,
            "task": "report",
            "project": "flights",
            "workflow": "daily",
            "state": "QUEUED",
            "findings": [_FINDING],
        }
    )

    instance_id: int
    task_instance_id: int | None
    task: str | None
    project: str
    workflow: str
    state: str = Field(description="Of the attempt, or of the instance.")
    findings: list[FindingOut]
