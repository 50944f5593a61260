"""Lines that were looked for in logs."""

from pydantic import Field

from shoal.api.schemas.common import Answer


class HitOut(Answer):
    """A line, with those around it. Long ones are cut off after 2,000 characters."""

    offset: int = Field(description="Of its first byte in the log.")
    line: str
    before: list[str]
    after: list[str]


class LogHits(Answer):
    """What was found in one log."""

    hits: list[HitOut]
    next_offset: int | None = Field(
        description="Where to go on; null: the log is finished and was read to its end."
    )
    size: int = Field(description="Of the whole log now, in bytes.")
    finished: bool = Field(description="Whether the log is complete.")


class TaskHits(Answer):
    """What was found in the log of one attempt of an instance."""

    task_instance_id: int
    task: str
    attempt: int
    hits: list[HitOut]
    problem: str | None = Field(description="Why the log could not be read.")


class InstanceHits(Answer):
    """What was found in the logs of an instance. Attempts without hits are left out."""

    items: list[TaskHits]
    next: str | None = Field(description="Cursor of the next part; null on the last one.")
