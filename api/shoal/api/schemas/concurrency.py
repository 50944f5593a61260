"""Concurrency groups."""

from datetime import datetime
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from shoal.api.schemas.common import ONE_LINE, Strict, example
from shoal.core.runs.concurrency import MOST_SLOTS
from shoal.core.runs.states import TaskState

_GROUP = {
    "project": "flights",
    "name": "warehouse",
    "description": "Connections to the warehouse",
    "slots": 4,
    "taken": 4,
    "waiting": 12,
    "updated_at": "2026-11-21T06:00:00Z",
}
_HOLDER = {
    "task_instance_id": 4711,
    "workflow_instance_id": 815,
    "workflow": "daily",
    "task": "load",
    "attempt": 1,
    "state": "RUNNING",
    "granted_at": "2026-11-21T06:00:00Z",
}
_WAITER = {**_HOLDER, "task_instance_id": 4720, "state": "BLOCKED", "granted_at": None}


class ConcurrencyGroupOut(BaseModel):
    """How many tasks that name the group may be at work at once."""

    model_config = example(_GROUP)
    uncounted: ClassVar[frozenset[str]] = frozenset({"taken", "waiting"})

    project: str
    name: str
    description: str
    slots: int
    taken: int = Field(description="Slots in use: more than `slots` after these were made fewer.")
    waiting: int = Field(description="Attempts that wait for a slot.")
    updated_at: datetime


class SlotUserOut(BaseModel):
    """An attempt that has a slot, or waits for one."""

    model_config = example(_HOLDER)

    task_instance_id: int
    workflow_instance_id: int
    workflow: str
    task: str
    attempt: int
    state: TaskState
    granted_at: datetime | None = Field(description="When it was given its slot.")


class ConcurrencyGroupDetail(ConcurrencyGroupOut):
    """A group with the tasks that use it, up to 100 of each kind."""

    model_config = example({**_GROUP, "holders": [_HOLDER], "waiters": [_WAITER]})
    uncounted = ConcurrencyGroupOut.uncounted | {"holders", "waiters"}

    holders: list[SlotUserOut] = Field(description="Who has a slot, the longest first.")
    waiters: list[SlotUserOut] = Field(description="In the order in which they get one.")


class ConcurrencyGroupIn(Strict):
    """What can be set."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"slots": 4, "description": "Connections to the warehouse"}]
        },
    )

    slots: StrictInt = Field(ge=0, le=MOST_SLOTS, description="0: nothing of the group starts.")
    description: str = Field(default="", max_length=2000, pattern=ONE_LINE)
