"""Lines that were looked for in logs."""

from pydantic import BaseModel, Field

from shoal.api.schemas.common import example

_HIT = {"offset": 8120, "line": "ERROR timeout", "before": ["INFO rows=27004"], "after": []}


class HitOut(BaseModel):
    """A line, with those around it. Long ones are cut off after 2,000 characters."""

    model_config = example(_HIT)

    offset: int = Field(description="Of its first byte in the log.")
    line: str
    before: list[str]
    after: list[str]


class LogHits(BaseModel):
    """What was found in one log."""

    model_config = example({"hits": [_HIT], "next_offset": None, "size": 9000, "finished": True})

    hits: list[HitOut]
    next_offset: int | None = Field(
        description="Where to go on; null: the log is finished and was read to its end."
    )
    size: int = Field(description="Of the whole log now, in bytes.")
    finished: bool = Field(description="Whether the log will not grow any more.")


class TaskHits(BaseModel):
    """What was found in the log of one attempt of an instance."""

    model_config = example(
        {"task_instance_id": 91, "task": "load", "attempt": 1, "hits": [_HIT], "problem": None}
    )

    task_instance_id: int
    task: str
    attempt: int
    hits: list[HitOut]
    problem: str | None = Field(description="Why the log could not be read.")


class InstanceHits(BaseModel):
    """What was found in the logs of an instance. Attempts without hits are left out."""

    model_config = example({"items": [], "next": None})

    items: list[TaskHits]
    next: str | None = Field(description="Cursor of the next part; null on the last one.")
