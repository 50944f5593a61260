"""Concurrency groups."""

from datetime import datetime
from typing import ClassVar

from pydantic import Field, StrictInt

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.definition.fields import ONE_LINE
from shoal.core.runs.concurrency import MOST_SLOTS
from shoal.core.runs.states import TaskState


class ConcurrencyGroupOut(Answer):
    """How many tasks that name the group may be at work at once."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"taken", "waiting"})

    project: str
    name: str
    description: str
    slots: int
    taken: int = Field(description="Slots in use: more than `slots` after these were made fewer.")
    waiting: int = Field(description="Attempts that wait for a slot.")
    updated_at: datetime


class SlotUserOut(Answer):
    """An attempt that has a slot, or waits for one."""

    task_instance_id: int
    workflow_instance_id: int
    workflow: str
    task: str
    attempt: int
    state: TaskState
    granted_at: datetime | None = Field(description="When it was given its slot.")


class ConcurrencyGroupDetail(ConcurrencyGroupOut):
    """A group with the tasks that use it, up to 100 of each kind."""

    uncounted = ConcurrencyGroupOut.uncounted | {"holders", "waiters"}

    holders: list[SlotUserOut] = Field(description="Who has a slot, the longest first.")
    waiters: list[SlotUserOut] = Field(description="In the order in which they get one.")


class ConcurrencyGroupIn(RequestBody):
    """What can be set."""

    slots: StrictInt = Field(ge=0, le=MOST_SLOTS, description="0: nothing of the group starts.")
    description: str = Field(default="", max_length=2000, pattern=ONE_LINE)
