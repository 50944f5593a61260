"""The JSON that the API answers, as types. Fields that a newer API adds pass through.

Times are RFC 3339 texts in UTC, such as 2026-11-21T06:00:00Z.
"""

from typing import Any, Literal, NotRequired, TypedDict


class ProjectJson(TypedDict):
    name: str
    description: str
    workflows: int
    created_at: str


class SecretJson(TypedDict):
    name: str
    created_at: str
    updated_at: str


class ProbeJson(TypedDict):
    ok: bool
    text: str
    worker: str
    took_s: float


class DataSourceJson(TypedDict):
    project: str
    name: str
    kind: str
    host: str
    port: int | None
    database: str
    user: str
    options: dict[str, str | int | float | bool]
    shared_with: list[str]
    has_password: bool
    password_secret: str | None
    version: int
    created_at: str
    updated_at: str


class DataSourceKindJson(TypedDict):
    kind: str
    title: str
    port: int | None
    host: Literal["required", "optional", "none"]
    database: Literal["required", "optional", "none"]
    database_is: str
    user: Literal["required", "optional", "none"]
    password: Literal["required", "optional", "none"]
    credential: str
    options_schema: dict[str, Any]


class EnvironmentJson(TypedDict):
    name: str
    description: str
    variables: dict[str, str]
    python: str
    setup: str
    worker_groups: list[str]
    version: int
    created_at: str
    updated_at: str


class EnvironmentDetailJson(EnvironmentJson):
    workflows: list[str]


class ResourceJson(TypedDict):
    project: str
    path: str
    version: int
    size: int
    sha256: str
    created_at: str
    ended_at: str | None
    instance_id: int | None


class WorkflowJson(TypedDict):
    project: str
    name: str
    description: str
    version: int
    digest: str
    tasks: int
    created_at: str
    updated_at: str


class WorkflowDetailJson(WorkflowJson):
    definition: dict[str, Any]


class VersionJson(TypedDict):
    version: int
    digest: str
    created_at: str


class VersionDetailJson(VersionJson):
    project: str
    name: str
    definition: dict[str, Any]


class ChangeJson(TypedDict):
    op: Literal["added", "removed", "changed"]
    path: str
    before: Any
    after: Any


class PublishJson(TypedDict):
    project: str
    name: str
    version: int
    created: bool  # in a dry run: would be
    digest: str
    diff: list[ChangeJson]


class ScheduleJson(TypedDict):
    id: int
    project: str
    workflow: str
    cron: str
    timezone: str
    parameters: dict[str, str]
    enabled: bool
    priority: str | None
    on_gap: str | None
    on_overlap: str | None
    start: str | None
    end: str | None
    exclude: list[str]
    calendar: str | None
    missed: str
    missed_window: float | None
    next_fire_at: str | None
    next_fire_times: list[str]


class FireTimeJson(TypedDict):
    local: str
    utc: str
    fires: bool
    marks: list[str]


class PreviewJson(TypedDict):
    cron: str
    timezone: str
    on_gap: str
    on_overlap: str
    fire_times: list[FireTimeJson]


class CalendarJson(TypedDict):
    project: str
    name: str
    description: str
    days: list[str]
    updated_at: str


class ConcurrencyGroupJson(TypedDict):
    project: str
    name: str
    description: str
    slots: int
    taken: int
    waiting: int
    updated_at: str


class SlotUserJson(TypedDict):
    task_instance_id: int
    workflow_instance_id: int
    workflow: str
    task: str
    attempt: int
    state: str
    granted_at: str | None


class ConcurrencyGroupDetailJson(ConcurrencyGroupJson):
    holders: list[SlotUserJson]
    waiters: list[SlotUserJson]


class CommandJson(TypedDict):
    id: int
    type: str
    state: Literal["PENDING", "DONE", "REFUSED"]
    reason: str | None
    instance_id: int | None
    result_instance_id: int | None
    backfill_id: int | None


class ParentJson(TypedDict):
    instance_id: int
    task_instance_id: int
    index: int
    depth: int


class InstanceJson(TypedDict):
    id: int
    project: str
    workflow: str
    version: int
    state: str
    reason: str | None
    priority: str
    parameters: dict[str, str]
    logical_time: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    rerun_of: int | None
    run_number: int
    command_id: int
    parent: NotRequired[ParentJson | None]
    task_counts: dict[str, int]
    labels: NotRequired[dict[str, str]]


class TaskInstanceJson(TypedDict):
    id: int
    workflow_instance_id: int
    task: str
    type: str
    attempt: int
    state: str
    worker_group: str
    worker: str | None
    reason: str | None
    exit_code: int | None
    due_at: NotRequired[str | None]
    looks: NotRequired[int]
    waiting_since: NotRequired[str | None]
    queued_at: str | None
    started_at: str | None
    finished_at: str | None
    environment: str | None
    depends_on: NotRequired[list[str]]  # within an instance
    outputs: NotRequired[dict[str, str]]  # of a single one
    detail: NotRequired[dict[str, Any]]


class InstanceDetailJson(InstanceJson):
    tasks: list[TaskInstanceJson]


class ProgressJson(TypedDict):
    task_instance_id: int
    done: float
    total: float | None
    unit: str
    label: str
    at: str


class LogJson(TypedDict):
    data: str
    offset: int
    next_offset: int
    size: int
    finished: bool


class EventJson(TypedDict):
    id: int
    at: str
    kind: str
    project: str
    instance_id: int | None
    task_instance_id: int | None
    data: dict[str, Any]


class MasterJson(TypedDict):
    id: str
    address: str
    started_at: str | None
    partitions: list[int]
    leads: bool
    database: NotRequired[str | None]  # an older API leaves it out
    clock_ahead_s: NotRequired[float | None]


class WorkerJson(TypedDict):
    id: str
    group: str
    address: str
    slots: int
    running: int
    started_at: str | None
    paused: str | None
    unreachable: NotRequired[list[str]]  # not in the answers of an older API
    logs_not_archived: NotRequired[str | None]
    clock_ahead_s: NotRequired[float | None]


class PartitionJson(TypedDict):
    index: int
    owner: str | None
    epoch: int
    open_instances: int | None
    pending_commands: int | None


class GroupJson(TypedDict):
    state: str
    generation: int
    leader: str | None
    members: list[str]


class BacklogJson(TypedDict):
    pending_commands: int
    open_instances: int
    queued: int
    claimed: int
    running: int


class QueueJson(TypedDict):
    group: str
    depth: int


class SetAsideJson(TypedDict):
    kind: str
    item: str
    partition: int
    reason: str
    tries: int
    since: str


class DamagedZnodeJson(TypedDict):
    path: str
    reason: str
    size: int
    at: str | None


class ClusterJson(TypedDict):
    masters: list[MasterJson]
    workers: list[WorkerJson]
    group: GroupJson
    partitions: list[PartitionJson]
    backlog: BacklogJson | None
    set_aside: NotRequired[list[SetAsideJson]]
    queues: list[QueueJson]
    zookeeper: dict[str, Any]
    database: dict[str, Any]
    damaged_znodes: NotRequired[list[DamagedZnodeJson]]


class CheckJson(TypedDict):
    ok: bool
    detail: str


class ChecksJson(TypedDict):
    database: CheckJson
    zookeeper: CheckJson
    partitions: NotRequired[CheckJson]
    masters: int
    workers: int
    paused_workers: int
    set_aside: NotRequired[int]
    damaged_znodes: NotRequired[int | None]


class ClockDifferenceJson(TypedDict):
    clock: str
    ahead_s: float


class HealthJson(TypedDict):
    status: Literal["ok", "degraded"]
    checks: ChecksJson
    masters: int
    workers: int
    version: str
    master_troubles: NotRequired[list[str]]  # an older API leaves it out
    clock_differences: NotRequired[list[ClockDifferenceJson]]


class TaskTypeJson(TypedDict):
    name: str
    params_schema: dict[str, Any]


class FindingJson(TypedDict):
    layer: str
    text: str
    waits: bool
    instance_id: int | None
    task_instance_id: int | None


class WhyJson(TypedDict):
    instance_id: int
    task_instance_id: int | None
    task: str | None
    project: str
    workflow: str
    state: str
    findings: list[FindingJson]
