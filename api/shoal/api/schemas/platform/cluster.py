"""Members, partitions, queues, task types."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from shoal.api.schemas.common import Answer
from shoal.core.definition.fields import PriorityName


class MasterOut(Answer):
    """A live master."""

    id: str
    address: str
    host: str | None
    started_at: datetime | None
    partitions: list[int] = Field(description="Those it owns now.")
    leads: bool = Field(description="Whether it leads the group that shares the partitions.")
    database: str | None = Field(
        default=None,
        description="What is wrong between it and the database; null while it is answered.",
    )
    given_up: str | None = Field(
        default=None,
        description="How often it has given partitions up since it started because the database "
        "had another owner; null if it never has.",
    )
    clock_ahead_s: float | None = Field(
        default=None,
        description="How far its wall clock is ahead of the cluster's time (negative: behind); "
        "null if it is right to within 2 s.",
    )


class WorkerOut(Answer):
    """A live worker."""

    id: str
    group: str
    address: str
    host: str | None
    slots: int
    running: int
    started_at: datetime | None
    paused: str | None = Field(description="Why it takes no further tasks; null if it does.")
    unreachable: list[str] = Field(
        default=[],
        description="Addresses of masters that do not answer it: it takes none of theirs.",
    )
    logs_not_archived: str | None = Field(
        default=None, description="Why it cannot copy finished logs to the archive; null if it can."
    )
    clock_ahead_s: float | None = Field(
        default=None,
        description="How far its wall clock is ahead of the cluster's time (negative: behind); "
        "null if it is right to within 2 s.",
    )


class PartitionOut(Answer):
    """Who owns a slice of the instances."""

    index: int
    owner: str | None
    epoch: int = Field(description="Fencing number of the owner; 0 without one.")
    open_instances: int | None = Field(
        description="Workflow instances that the owner works on; null without the database."
    )
    pending_commands: int | None = Field(
        description="Requests that the owner has not handled yet; null without the database."
    )


class MasterGroupOut(BaseModel):
    """The group in which masters agree on an assignment of the partitions."""

    state: str = Field(description="Empty, PreparingRebalance, CompletingRebalance, Stable, Dead.")
    generation: int = Field(description="Grows with every rebalance.")
    leader: str | None
    members: list[str]


class BacklogOut(BaseModel):
    """What there is to do."""

    pending_commands: int
    open_instances: int
    queued: int = Field(description="Tasks that wait for a worker.")
    claimed: int = Field(description="Tasks that a worker has taken and not started yet.")
    running: int


class SetAsideOut(BaseModel):
    """What a master cannot work with, so that nothing is done with it."""

    kind: str = Field(description="instance, command, schedule, backfill, concurrency group.")
    item: str = Field(description="Its id, or its name.")
    partition: int
    reason: str
    tries: int = Field(description="How often it was tried so far.")
    since: datetime


class QueueOut(BaseModel):
    """What waits for the workers of a group."""

    group: str
    depth: int


class ZooKeeperOut(BaseModel):
    """The API's own connection to ZooKeeper."""

    state: str
    session_timeout_s: float
    latency_s: float | None = Field(
        default=None, description="How long it took to answer the API once, just now."
    )


class DamagedZnodeOut(BaseModel):
    """A znode that could not be what its place is for; it was removed or written anew."""

    path: str
    reason: str
    size: int = Field(description="Bytes of its data.")
    at: datetime | None = Field(description="When it was found.")


class DatabaseOut(BaseModel):
    """Where the history is kept."""

    kind: str
    latency_s: float | None = Field(
        default=None,
        description="How long it took to answer the API once, just now; null: it did not.",
    )


class HistoryExportOut(BaseModel):
    """The export of the history, for which the purge waits."""

    verified_at: datetime | None = Field(
        description="When an export found all in order last; null: never."
    )
    trouble: str | None = Field(
        description="Why it is behind, or what the history lacks; null: nothing is known. Until it "
        "is mended the database keeps what was not exported."
    )
    since: datetime | None = Field(description="Since when.")


class ClusterOut(Answer):
    """The members, and what each does."""

    masters: list[MasterOut]
    workers: list[WorkerOut]
    group: MasterGroupOut
    partitions: list[PartitionOut]
    backlog: BacklogOut | None = Field(description="Null while the database cannot be reached.")
    set_aside: list[SetAsideOut] = Field(
        description="The newest 100; tried again later, at takeovers, an instance on RECOVER."
    )
    queues: list[QueueOut]
    zookeeper: ZooKeeperOut
    database: DatabaseOut
    history: HistoryExportOut | None = Field(
        default=None, description="null: no history is exported, or the database is away."
    )
    alert_servers: list[str] | None = Field(
        description="Servers that share the work; null: nothing is defined, so none is needed."
    )
    damaged_znodes: list[DamagedZnodeOut] = Field(
        description="Damaged znodes that were found and repaired of late, the oldest first."
    )


class WorkerGroupOut(Answer):
    """Workers that do the same work, and what waits for them."""

    group: str
    queued: int = Field(description="Tasks that wait for one of them.")
    workers: int
    paused: int = Field(description="How many of them take no further tasks.")
    slots: int = Field(description="Of all of them.")
    running: int


class QueueEntryOut(Answer):
    """A task that waits for a worker. Of projects that the caller may not see it says no names."""

    group: str
    position: int | None = Field(
        description="In the order in which workers claim: 1 is next. Null: too far back to count."
    )
    priority: PriorityName = Field(description="Of the workflow instance, which counts first.")
    task_priority: PriorityName
    task_instance_id: int | None
    workflow_instance_id: int | None
    project: str | None
    workflow: str | None
    task: str | None
    attempt: int | None
    queued_at: datetime | None


class TakeoverOut(Answer):
    """A partition that has changed hands."""

    id: int
    at: datetime
    partition: int
    epoch: int
    owner: str
    previous_owner: str | None = Field(description="Null: it had none before.")


class TaskTypeOut(Answer):
    """An installed task type."""

    name: str
    params_schema: dict[str, Any] = Field(description="JSON Schema of `params`.")
