"""The JSON that the API takes and answers, as types.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AlertAttemptOut(TypedDict):
    """
    An attempt to send a message.
    """

    number: int
    at: str
    took_s: float
    is_sent: bool
    answer: str


class AlertChannelIn(TypedDict):
    """
    A channel.
    """

    kind: str
    options: NotRequired[dict[str, Any]]
    enabled: NotRequired[bool]
    per_minute: NotRequired[int]
    description: NotRequired[str]


class AlertChannelKindOut(TypedDict):
    """
    A kind of channel that is installed.
    """

    kind: str
    needs_addresses: bool
    options_schema: dict[str, Any]


class AlertChannelOut(TypedDict):
    """
    A channel: a way by which messages leave.
    """

    name: str
    version: int
    created_at: str
    updated_at: str
    spec: dict[str, Any]


class AlertPreviewOut(TypedDict):
    """
    What a message would say.
    """

    subject: str
    text: str
    html: str


class AlertReceiverOut(TypedDict):
    """
    A receiver: people and the channels that reach them.
    """

    name: str
    version: int
    created_at: str
    updated_at: str
    spec: dict[str, Any]


Workflow: TypeAlias = str


Task: TypeAlias = str


Label: TypeAlias = str


Receiver: TypeAlias = str


class AlertRuleOut(TypedDict):
    """
    A rule: what raises an alert, and who is notified.
    """

    name: str
    version: int
    created_at: str
    updated_at: str
    spec: dict[str, Any]


class AlertSilenceIn(TypedDict):
    """
    Alerts without notifications, and until when.
    """

    workflow: NotRequired[str]
    task: NotRequired[str]
    rule: NotRequired[str]
    since: NotRequired[str | None]
    until: str
    reason: NotRequired[str]


class AlertSilenceOut(TypedDict):
    """
    A silence.
    """

    id: int
    workflow: str
    task: str
    rule: str
    since: str
    until: str
    reason: str
    by: str


AlertState: TypeAlias = Literal["OPEN", "RESOLVED", "TOLD"]


ToItem: TypeAlias = str


class AlertTestIn(TypedDict):
    """
    The addresses of a message that tries a channel.
    """

    to: NotRequired[list[ToItem]]


class AuditHeadOut(TypedDict):
    """
    The end of the chain. Who notes it finds later if anything before it was changed.
    """

    position: int
    hash: str
    pruned: int
    unlinked: int


class AuditPruneIn(TypedDict):
    """
    Up to when entries are removed.
    """

    before: str


class AuditPrunedOut(TypedDict):
    """
    What was removed.
    """

    removed: int
    position: int
    hash: str


Date: TypeAlias = str


BackfillRunState: TypeAlias = Literal[
    "WAITING", "STARTED", "SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"
]


BackfillState: TypeAlias = Literal[
    "RUNNING", "PAUSED", "CANCELLING", "CANCELLED", "SUCCEEDED", "FAILED"
]


class BacklogOut(TypedDict):
    """
    What there is to do.
    """

    pending_commands: int
    open_instances: int
    queued: int
    claimed: int
    running: int


Basis: TypeAlias = Literal["run", "tasks"]


class BulkSchedulesIn(TypedDict):
    """
    The request and its schedules: by id, or, without ids, by the query.
    """

    type: Literal["pause", "resume"]
    ids: NotRequired[list[int] | None]


By: TypeAlias = Literal["schedule", "day"]


class CalendarIn(TypedDict):
    """
    What a calendar holds; it is replaced as a whole.
    """

    days: list[str]
    description: NotRequired[str]


class CalendarOut(TypedDict):
    """
    Days on which schedules that name it do not fire.
    """

    project: str
    name: str
    description: str
    days: list[str]
    updated_at: str


class Check(TypedDict):
    """
    One thing that the API depends on.
    """

    ok: bool
    detail: str


class Checks(TypedDict):
    """
    What was looked at.
    """

    database: Check
    zookeeper: Check
    partitions: Check
    commands: Check
    worker_groups: NotRequired[Check]
    masters: int
    workers: int
    paused_workers: int
    set_aside: int
    damaged_znodes: int | None


class ClockDifference(TypedDict):
    """
    A wall clock that is off by more than 2 s. What is due goes by the cluster's time.
    """

    clock: str
    ahead_s: float


Code: TypeAlias = Literal[
    "child.instance",
    "child.items",
    "child.more",
    "child.quarantined",
    "child.starting",
    "delay.look",
    "delay.retry",
    "delay.start",
    "dependency.looking",
    "dependency.no_workflow",
    "dependency.run",
    "instance.more_tasks",
    "instance.quarantined",
    "look.waits",
    "overlap.admits",
    "overlap.instance",
    "overlap.lineup",
    "partition.owner",
    "partition.unowned",
    "partition.works",
    "queue.arriving",
    "queue.place",
    "result.instance",
    "result.newer_attempt",
    "result.task",
    "slots.holder",
    "slots.no_group",
    "slots.taken",
    "task.held",
    "upstream.more",
    "upstream.rule",
    "upstream.task",
    "upstream.waiting",
    "workers.none",
    "workers.paused",
    "workers.runs",
    "workers.slots",
    "workers.starting",
    "run.overlap",
    "run.starting",
    "run.paused",
    "run.stopping",
    "run.overdue",
    "run.late",
    "run.expected",
    "run.slower",
    "tasks.blocked",
    "tasks.queued",
    "tasks.delayed",
    "fire.late",
    "reason.backfill_cancelled",
    "reason.child",
    "reason.child_quarantined",
    "reason.child_refused",
    "reason.claim_gone",
    "reason.dependency_missing",
    "reason.dependency_no_workflow",
    "reason.dependency_run",
    "reason.dependency_task",
    "reason.disabled",
    "reason.exit_code",
    "reason.failures_ignored",
    "reason.forced",
    "reason.items",
    "reason.killed_between_looks",
    "reason.killed_by_request_unstarted",
    "reason.killed_for",
    "reason.killed_unstarted",
    "reason.none_failed",
    "reason.none_succeeded",
    "reason.not_selected",
    "reason.not_started",
    "reason.no_branch",
    "reason.no_run",
    "reason.other_branch",
    "reason.ran_longer",
    "reason.replaced",
    "reason.signal",
    "reason.stopped",
    "reason.stopped_between_looks",
    "reason.stopped_unstarted",
    "reason.superseded",
    "reason.tasks_failed",
    "reason.timed_out",
    "reason.upstream_failed",
    "reason.upstream_killed",
    "reason.upstream_lost",
    "reason.upstream_skipped",
    "reason.worker_gone",
]


class CodeIn(TypedDict):
    """
    What a command line has got from the browser.
    """

    code: str
    verifier: str


CommandState: TypeAlias = Literal["PENDING", "DONE", "REFUSED"]


CommandType: TypeAlias = Literal[
    "START",
    "RERUN",
    "PAUSE",
    "RESUME",
    "STOP",
    "RECOVER",
    "RERUN_TASKS",
    "KILL_TASK",
    "FORCE_SUCCESS",
    "ADMIT",
    "CHILD",
    "BACKFILL",
    "PAUSE_BACKFILL",
    "RESUME_BACKFILL",
    "CANCEL_BACKFILL",
    "RETRY_BACKFILL",
]


class ConcurrencyGroupIn(TypedDict):
    """
    What can be set.
    """

    slots: int
    description: NotRequired[str]


class ConcurrencyGroupOut(TypedDict):
    """
    How many tasks that name the group may be at work at once.
    """

    project: str
    name: str
    description: str
    slots: int
    taken: int
    waiting: int
    updated_at: str


class CopyIn(TypedDict):
    """
    What is copied; its project has to be readable for the caller.
    """

    project: str
    workflow: str
    version: NotRequired[int | None]


CostBy: TypeAlias = Literal["project", "workflow", "task", "label"]


class CostOut(TypedDict):
    """
    What attempts have used. What was not measured counts 0.
    """

    attempts: int
    cpu_s: float
    memory_gb_s: float
    slot_s: float


class CountOfDay(TypedDict):
    """
    How many there were on a day.
    """

    day: str
    count: int


class CountOut(TypedDict):
    """
    A number that is not counted for ever.
    """

    count: int
    is_more: bool


class CriticalOut(TypedDict):
    """
    How a task was on critical paths: a run's end has waited for it.
    """

    runs: int
    runs_of_days: int
    share: float | None
    own_p50_s: float | None
    gain_mean_s: float | None
    gain_max_s: float | None
    gain_sum_s: float | None


class DamagedZnodeOut(TypedDict):
    """
    A znode that could not be what its place is for; it was removed or written anew.
    """

    path: str
    reason: str
    size: int
    at: str | None


class DataSourceIn(TypedDict):
    """
    What can be set.
    """

    kind: str
    host: NotRequired[str]
    port: NotRequired[int | None]
    database: NotRequired[str]
    user: NotRequired[str]
    options: NotRequired[dict[str, str | int | float | bool]]
    shared_with: NotRequired[list[str]]
    password: NotRequired[str | None]


class DataSourceOut(TypedDict):
    """
    A data source as it is defined. Its password is never returned.
    """

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


class DatabaseOut(TypedDict):
    """
    Where the history is kept.
    """

    kind: str
    latency_s: NotRequired[float | None]


DateOrder: TypeAlias = Literal["ascending", "descending"]


class DayOut(TypedDict):
    """
    One day of a calendar.
    """

    date: str
    states: dict[str, int]
    missing: int
    is_more: bool


class DayTotalsOut(TypedDict):
    """
    The totals of one day.
    """

    runs: int
    succeeded: int
    failed: int
    stopped: int
    failure_rate: float | None
    late: int
    late_rate: float | None
    by_trigger: dict[str, int]
    duration_mean_s: float | None
    admission_mean_s: float | None
    attempts: int
    failed_attempts: int
    lost_attempts: int
    retries: int
    retry_rate: float | None
    wait_mean_s: float | None
    busy_s: float | None
    cpu_s: float | None
    day: str


class DefinitionIn(TypedDict):
    """
    A definition that is not published: its text, or its value.
    """

    text: NotRequired[str | None]
    definition: NotRequired[dict[str, Any] | None]


class DeletedOut(TypedDict):
    """
    What was deleted.
    """

    files: int


DeliveryKind: TypeAlias = Literal["FIRING", "REMINDER", "ESCALATION", "RESOLVED", "TEST"]


DeliveryState: TypeAlias = Literal["PENDING", "SENDING", "SENT", "FAILED", "WITHDRAWN", "SILENCED"]


Downstream: TypeAlias = Literal["none", "direct", "all"]


class DraftDetail(TypedDict):
    """
    A draft with its text, as it was typed.
    """

    project: str
    name: str
    editor: str
    base_version: int
    newest_version: int
    revision: int
    created_at: str
    updated_at: str
    text: str


class DraftIn(TypedDict):
    """
    What a draft becomes.
    """

    text: str
    base_version: NotRequired[int | None]


class DraftOut(TypedDict):
    """
    A draft without its text.
    """

    project: str
    name: str
    editor: str
    base_version: int
    newest_version: int
    revision: int
    created_at: str
    updated_at: str


class EdgeOut(TypedDict):
    """
    `target` depends on `source`.
    """

    source: str
    target: str


class EnvironmentDetail(TypedDict):
    """
    An environment, and who names it.
    """

    name: str
    description: str
    variables: dict[str, str]
    python: str
    setup: str
    worker_groups: list[str]
    version: int
    created_at: str
    updated_at: str
    workflows: list[str]


WorkerGroup: TypeAlias = str


class EnvironmentIn(TypedDict):
    """
    What can be set. What is left out is empty.
    """

    description: NotRequired[str]
    variables: NotRequired[dict[str, str]]
    python: NotRequired[str]
    setup: NotRequired[str]
    worker_groups: NotRequired[list[WorkerGroup]]


class EnvironmentOut(TypedDict):
    """
    An environment as it is defined.
    """

    name: str
    description: str
    variables: dict[str, str]
    python: str
    setup: str
    worker_groups: list[str]
    version: int
    created_at: str
    updated_at: str


class Escalation(TypedDict):
    """
    Who is notified as well of an alert that goes on without an acknowledgement.
    """

    after: str | float
    receivers: list[Receiver]


EventKind: TypeAlias = Literal[
    "instance.state",
    "instance.overdue",
    "instance.late",
    "task.state",
    "task.overdue",
    "task.detail",
    "backfill.state",
    "schedule.state",
    "alert.condition",
    "alert.state",
    "alert.delivery",
    "workflow.published",
    "workflow.renamed",
    "workflow.archived",
    "workflow.unarchived",
    "workflow.deleted",
]


class ExportOut(TypedDict):
    """
    Workflows of a project with what they name, by names. No secrets, no runs.
    """

    project: str
    text: str
    environments: list[str]


class FailurePlaceOut(TypedDict):
    """
    A task that failed so.
    """

    project: str
    workflow: str
    task: str
    count: int


FieldNeed: TypeAlias = Literal["required", "optional", "none"]


class FireOut(TypedDict):
    """
    A fire time to come.
    """

    schedule_id: int
    at: str


class FireTimeOut(TypedDict):
    """
    One fire time, or a day that is left out.
    """

    local: str
    utc: str
    fires: bool
    marks: list[Literal["after the gap", "1st pass", "2nd pass", "left out"]]


class FlappingOut(TypedDict):
    """
    How its outcome has changed from run to run, as of the newest day: of the last 20 runs.
    """

    runs: int
    changes: int
    failed_rate: float | None
    retried_rate: float | None
    last_seen: str | None


class ForecastOut(TypedDict):
    """
    How many slots an hour to come will need.
    """

    forecast_day: str
    hour: int
    worker_group: str
    slots: int
    expected: float
    tested_hours: int | None
    error_p50: float | None
    within_p95: float | None


Grant: TypeAlias = Literal["see", "run"]


class GrantIn(TypedDict):
    """
    What another project may do.
    """

    what: Grant


class GrantOut(TypedDict):
    """
    What a project lets the tasks of another one do.
    """

    project: str
    what: Grant
    created_at: str


class GridTask(TypedDict):
    """
    A column of cells.
    """

    name: str
    type: str | None
    is_current: bool


class GroupChange(TypedDict):
    """
    What a group is for.
    """

    description: str


class GroupIn(TypedDict):
    """
    A new group.
    """

    name: str
    description: NotRequired[str]


class GroupOut(TypedDict):
    """
    A group of users and service accounts.
    """

    name: str
    description: str
    members: list[str]
    created_at: str


class HappenedOut(TypedDict):
    """
    An event as the live stream has it, a command, or a takeover of a partition.
    """

    at: str
    kind: str
    id: int
    project: str | None
    instance_id: int | None
    task_instance_id: int | None
    by: str | None
    data: dict[str, Any]


HealthCode: TypeAlias = Literal[
    "health.database",
    "health.zookeeper",
    "health.partitions",
    "health.no_master",
    "health.no_worker",
    "health.master_database",
    "health.fenced",
    "health.lost_commits",
    "health.commands",
    "health.worker_groups",
    "health.queued",
    "health.quarantined",
    "health.skipped",
    "health.alerts_lag",
    "health.export_lag",
    "health.purge_age",
    "health.loop_lag",
]


class HealthFinding(TypedDict):
    """
    One reason why the cluster is degraded.
    """

    code: HealthCode
    arguments: dict[str, str | int | float | None]
    text: str


class HistoryExportOut(TypedDict):
    """
    The export of the history, for which the purge waits.
    """

    verified_at: str | None
    trouble: str | None
    since: str | None


HistoryKind: TypeAlias = Literal[
    "instance.state",
    "instance.overdue",
    "instance.late",
    "task.state",
    "task.overdue",
    "task.detail",
    "backfill.state",
    "schedule.state",
    "alert.condition",
    "alert.state",
    "alert.delivery",
    "workflow.published",
    "workflow.renamed",
    "workflow.archived",
    "workflow.unarchived",
    "workflow.deleted",
    "command",
    "partition.takeover",
]


class HitOut(TypedDict):
    """
    A line, with those around it. Long ones are cut off after 2,000 characters.
    """

    offset: int
    line: str
    before: list[str]
    after: list[str]


HolderKind: TypeAlias = Literal["user", "service-account", "group"]


class IdentityIn(TypedDict):
    """
    Who a user is for a provider or a directory.
    """

    issuer: str
    subject: str


class ImportIn(TypedDict):
    """
    What was exported, or written like that.
    """

    text: str


class InstanceCounts(TypedDict):
    """
    How many instances a filter means. States without any are missing.
    """

    total: CountOut
    states: dict[str, CountOut]


ItemConsumer: TypeAlias = Literal["masters", "alerts", "history"]


ItemKind: TypeAlias = Literal[
    "instance",
    "command",
    "schedule",
    "backfill",
    "concurrency group",
    "purge",
    "event",
    "message",
    "alert",
    "workflow",
    "condition",
    "cluster",
    "row",
    "roll-up",
]


class ItemProblem(TypedDict):
    """
    Why nothing is asked of one of many.
    """

    type: str
    status: int
    detail: str


class KeysOut(TypedDict):
    """
    Which keys there are, and where. No key is ever shown.
    """

    primary: str
    next: str | None
    old: list[str]
    retired: list[str]
    here: list[str]
    masters: dict[str, list[str]]
    used: dict[str, int]


class LabelChanges(TypedDict):
    """
    New values of labels; null removes one.
    """

    labels: dict[str, str | None]


class LabelsOut(TypedDict):
    """
    All labels of an instance.
    """

    labels: dict[str, str]


Language: TypeAlias = Literal["en", "zh"]


Layer: TypeAlias = Literal[
    "command",
    "overlap",
    "instance",
    "partition",
    "upstream",
    "delay",
    "concurrency",
    "dependency",
    "look",
    "child",
    "queue",
    "workers",
    "result",
]


FoldedItem: TypeAlias = str


class Live(TypedDict):
    """
    The process answers.
    """

    status: NotRequired[Literal["ok"]]


class LoadCellOut(TypedDict):
    """
    An hour of a weekday.
    """

    weekday: int
    hour: int
    days: int
    running_mean: float
    running_max: int
    waiting_mean: float
    waiting_max: int
    needed_max: int


class LoadGroupOut(TypedDict):
    """
    The heat map of a worker group.
    """

    worker_group: str
    cells: list[LoadCellOut]


class LogHits(TypedDict):
    """
    What was found in one log.
    """

    hits: list[HitOut]
    next_offset: int | None
    size: int
    finished: bool


class LogOut(TypedDict):
    """
    A range of a log as text. Offsets are bytes.
    """

    data: str
    offset: int
    next_offset: int
    size: int
    finished: bool


LogicKind: TypeAlias = Literal["CONDITIONS", "SWITCH", "SUB_WORKFLOW", "MAP", "DEPENDENT"]


class LoginIn(TypedDict):
    """
    A name and its password.
    """

    name: str
    password: str


class LongestStep(TypedDict):
    """
    How long a process has worked without a pause: its other requests waited meanwhile.
    """

    process: str
    recent_s: float
    ever_s: float


class MasterGroupOut(TypedDict):
    """
    The group in which masters agree on an assignment of the partitions.
    """

    state: str
    generation: int
    leader: str | None
    members: list[str]


class MasterOut(TypedDict):
    """
    A live master.
    """

    id: str
    address: str
    host: str | None
    started_at: str | None
    partitions: list[int]
    leads: bool
    database: NotRequired[str | None]
    given_up: NotRequired[str | None]
    clock_ahead_s: NotRequired[float | None]


class MessageTemplates(TypedDict):
    """
    Liquid templates of what messages say instead of the usual; empty: the usual.

    They know what webhooks are sent: docs/alerts.md lists it.
    """

    subject: NotRequired[str]
    text: NotRequired[str]


class NamedOut(TypedDict):
    """
    A task names a workflow: to run it, or to wait for its runs.
    """

    project: str
    workflow: str
    kind: Literal["SUB_WORKFLOW", "MAP", "DEPENDENT"]
    task: str


class OneTimeCodeIn(TypedDict):
    """
    A code that was made a moment ago.
    """

    code: str


class OneTimeCodeOut(TypedDict):
    """
    A code, shown this once.
    """

    code: str
    valid_s: float


Only: TypeAlias = Literal["missing", "failed"]


Op: TypeAlias = Literal["added", "removed", "changed"]


Outcome: TypeAlias = Literal["done", "refused"]


class ParameterIn(TypedDict):
    """
    The new value of a parameter.
    """

    value: str | int | float | bool


class ParameterOut(TypedDict):
    """
    One parameter of a project.
    """

    project: str
    name: str
    value: str


class ParentOut(TypedDict):
    """
    The SUB_WORKFLOW or MAP task that an instance works for.
    """

    instance_id: int
    task_instance_id: int
    index: int
    depth: int


class PartitionOut(TypedDict):
    """
    Who owns a slice of the instances.
    """

    index: int
    owner: str | None
    epoch: int
    open_instances: int | None
    pending_commands: int | None


class PasswordIn(TypedDict):
    """
    Another password for oneself.
    """

    current: str
    new: str
    keep_tokens: NotRequired[bool]


class PastTaskOut(TypedDict):
    """
    A task of the version that the run was of.
    """

    name: str
    type: str
    worker_group: str
    depends_on: list[str]


Permission: TypeAlias = Literal[
    "signed-in",
    "project.read",
    "run.operate",
    "project.edit",
    "connection.edit",
    "project.manage",
    "cluster.read",
    "cluster.operate",
    "project.create",
    "history.purge",
    "environment.edit",
    "restriction.edit",
    "user.manage",
    "audit.read",
    "secrets.rotate",
]


Phase: TypeAlias = Literal["waiting", "working", "stuck", "done"]


class PlaceIn(TypedDict):
    """
    The upper left corner of a task.
    """

    x: float
    y: float


class PlaceOut(TypedDict):
    """
    The upper left corner of a task.
    """

    x: float
    y: float


class PlannedOut(TypedDict):
    """
    One line of a plan.
    """

    position: int
    project: str
    workflow: str
    logical_time: str
    skipped: str | None


class PredictionOut(TypedDict):
    """
    How good baselines were: runs of the last 7 days, each predicted from the days before it.
    """

    runs: int
    error_p50_s: float | None
    error_share_p50: float | None
    within_p95: float | None
    late_share: float | None


class PreviewIn(TypedDict):
    """
    A schedule that need not exist.
    """

    cron: str
    timezone: NotRequired[str]
    on_gap: NotRequired[Literal["shift", "skip"] | None]
    on_overlap: NotRequired[Literal["first", "last", "both"] | None]
    start: NotRequired[str | None]
    end: NotRequired[str | None]
    exclude: NotRequired[list[str]]
    project: NotRequired[str | None]
    calendar: NotRequired[str | None]
    n: NotRequired[int]


class PreviewOut(TypedDict):
    """
    When a schedule will fire.
    """

    cron: str
    timezone: str
    on_gap: Literal["shift", "skip"]
    on_overlap: Literal["first", "last", "both"]
    fire_times: list[FireTimeOut]


PrincipalKind: TypeAlias = Literal["USER", "SERVICE_ACCOUNT", "BREAK_GLASS"]


Priority: TypeAlias = Literal[0, 1, 2, 3, 4]


class ProbeIn(TypedDict):
    """
    From where a data source is tried.
    """

    worker_group: NotRequired[str]
    parameters: NotRequired[dict[str, str]]


class ProbeOut(TypedDict):
    """
    What a worker has found.
    """

    ok: bool
    text: str
    worker: str
    took_s: float


class ProblemField(TypedDict):
    """
    One field that is wrong.
    """

    field: str
    message: str
    line: NotRequired[int | None]


class ProgressOut(TypedDict):
    """
    How far a running task is, as its work says.
    """

    task_instance_id: int
    done: float
    total: float | None
    unit: str
    label: str
    at: str


class ProjectIn(TypedDict):
    """
    What can be changed of a project.
    """

    description: NotRequired[str]


class ProjectOut(TypedDict):
    """
    A name space of workflows.
    """

    name: str
    description: str
    workflows: int
    created_at: str


class PurgeIn(TypedDict):
    """
    What is to go; without anything, what the masters' rules say.
    """

    dry_run: NotRequired[bool]
    before: NotRequired[str | None]
    even_if_not_exported: NotRequired[bool]
    project: NotRequired[str | None]
    workflow: NotRequired[str | None]


class PurgeOut(TypedDict):
    """
    A purge and how far the masters have come with it.
    """

    id: int
    dry_run: bool
    before: str | None
    project: str | None
    workflow_id: int | None
    created_at: str
    finished_at: str | None
    partitions: int
    partitions_done: int
    instances: int
    attempts: int
    events: int
    commands: int
    backfills: int
    oldest: str | None
    even_if_not_exported: NotRequired[bool]
    held: NotRequired[int]
    held_because: NotRequired[str | None]


class QuarantinedOut(TypedDict):
    """
    What a part of Shoal cannot work with: it stops nothing else.
    """

    consumer: str
    kind: str
    item: str
    project: str | None
    workflow: str | None
    reason: str
    tries: int
    since: str
    last_at: str
    is_skipped: bool
    retry_at: NotRequired[str | None]


class QuarantinedRef(TypedDict):
    """
    Which quarantined item, as lists show it.
    """

    consumer: ItemConsumer
    kind: ItemKind
    item: str


class QueueEntryOut(TypedDict):
    """
    A task that waits for a worker. Of projects that the caller may not see it says no names.
    """

    group: str
    position: int | None
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
    task_priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
    task_instance_id: int | None
    workflow_instance_id: int | None
    project: str | None
    workflow: str | None
    task: str | None
    attempt: int | None
    queued_at: str | None


class QueueOut(TypedDict):
    """
    What waits for the workers of a group.
    """

    group: str
    depth: int


class RenameIn(TypedDict):
    """
    What a workflow is to be called.
    """

    name: str
    despite: NotRequired[list[Literal["references"]]]


class RenameOut(TypedDict):
    """
    A workflow under its new name, or what renaming would leave behind.
    """

    project: str
    before: str
    name: str
    version: int
    dry_run: bool
    downstream: list[NamedOut]
    hidden: int


class RenderedOut(TypedDict):
    """
    What a task gets. Secrets are masked, always by the same.
    """

    params: dict[str, Any]
    parameters: dict[str, str]
    problem: str | None


Reprocess: TypeAlias = Literal["none", "failed", "all"]


class ResourceGrantIn(TypedDict):
    """
    Which files another project may use.
    """

    paths: list[str]


class ResourceGrantOut(TypedDict):
    """
    Which files of a project the tasks of another one may use.
    """

    project: str
    paths: list[str]
    created_at: str
    updated_at: str


class ResourceOut(TypedDict):
    """
    A version of a file.
    """

    project: str
    path: str
    version: int
    size: int
    sha256: str
    created_at: str
    ended_at: str | None
    instance_id: int | None


Restricted: TypeAlias = Literal["worker-group", "environment"]


Project: TypeAlias = str


class RestrictionIn(TypedDict):
    """
    Which projects may use a worker group or an environment.
    """

    projects: list[Project]


class RestrictionOut(TypedDict):
    """
    A worker group or an environment that some projects alone may use.
    """

    kind: Restricted
    name: str
    projects: list[str]
    created_at: str
    updated_at: str


Role: TypeAlias = Literal["reader", "runner", "writer", "owner"]


class RoleOut(TypedDict):
    """
    A role in a project.
    """

    project: str
    role: Role


class RollupOut(TypedDict):
    """
    A result: what one job has found about one day.
    """

    job: str
    day: str
    rows: int | None
    stored_at: str


class RollupRowsOut(TypedDict):
    """
    The rows of one workflow in a result, or those that belong to no project.
    """

    project: str
    workflow: str
    rows: list[dict[str, Any]]


class RollupRowsPage(TypedDict):
    """
    A page of a result, by project and workflow.
    """

    items: list[RollupRowsOut]
    next: NotRequired[str | None]
    job: str
    day: str | None


class Rotation(TypedDict):
    """
    Who is on duty, week by week: of the members one after the other, again and again.

    The first one has the week that begins on ``start`` at ``at``; before that, too.
    """

    start: str
    at: NotRequired[str]
    timezone: NotRequired[str]
    weeks: NotRequired[int]


class RotationIn(TypedDict):
    """
    Whether a rotation may begin.
    """

    begin: bool


class RotationOut(TypedDict):
    """
    What a step has done.
    """

    phase: Phase
    key: str
    did: str
    encrypted: int
    without_key: list[str]
    unreadable: list[str]
    retired: list[str]


class RunDayOut(TypedDict):
    """
    A workflow on one day, for a sparkline.
    """

    day: str
    runs: int
    failed: int
    late: int
    duration_p50_s: float | None
    duration_p95_s: float | None


class RunValuesOut(TypedDict):
    """
    A workflow in a window.
    """

    runs: int
    succeeded: int
    failed: int
    stopped: int
    failure_rate: float | None
    late: int
    late_rate: float | None
    duration_p50_s: float | None
    duration_p95_s: float | None
    duration_mean_s: float | None
    duration_max_s: float | None
    admission_p50_s: float | None
    admission_p95_s: float | None
    admission_mean_s: float | None
    wait_p50_s: float | None
    wait_p95_s: float | None
    wait_mean_s: float | None
    critical_p50_s: float | None
    attempts: int
    retries: int


class SaidOut(TypedDict):
    """
    A sentence, and what a program needs to say it in another language.
    """

    code: Code
    arguments: dict[str, str | int | float | None]
    text: str


class ScheduleMinuteOut(TypedDict):
    """
    A minute in which schedules fire, of the last 28 days.
    """

    scope: str
    minute: int
    starts_mean: float
    starts_max: int
    skew_p50_s: float | None
    skew_p95_s: float | None
    skew_max_s: float | None
    is_hot: bool


class ScheduleMoveOut(TypedDict):
    """
    A schedule that would better fire some minutes earlier or later.
    """

    place: int
    schedule_id: int
    project: str
    workflow: str
    minute: int
    move_min: int
    starts_per_day: float
    highest_before: float | None
    highest_after: float | None


class ScheduleOut(TypedDict):
    """
    One timetable of a workflow.
    """

    id: int
    project: str
    workflow: str
    cron: str
    timezone: str
    parameters: dict[str, str]
    enabled: bool
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"] | None
    on_gap: Literal["shift", "skip"] | None
    on_overlap: Literal["first", "last", "both"] | None
    start: str | None
    end: str | None
    exclude: list[str]
    calendar: str | None
    missed: Literal["skip", "last", "all"]
    missed_window: float | None
    paused_at: str | None
    next_fire_at: str | None
    next_fire_times: list[str]


class SchedulePlanOut(TypedDict):
    """
    What becomes of one schedule; both have their next fire times.
    """

    change: Literal["added", "removed", "changed", "kept"]
    before: ScheduleOut | None
    after: ScheduleOut | None


class SecretIn(TypedDict):
    """
    The new value of a secret, or where it is kept: one of the two.
    """

    value: NotRequired[str]
    reference: NotRequired[str]


class SecretOut(TypedDict):
    """
    A secret, without its value: only tasks ever get that.
    """

    name: str
    reference: str | None
    created_at: str
    updated_at: str


class SecretTestOut(TypedDict):
    """
    Whether a secret could be given to a task now.
    """

    ok: bool
    text: str
    took_s: float


SelectionMode: TypeAlias = Literal["only", "upstream", "downstream"]


class ServiceAccountIn(TypedDict):
    """
    A new service account of a project.
    """

    name: str
    role: Role


class SessionOut(TypedDict):
    """
    A browser that has signed in.
    """

    id: int
    created_at: str
    used_at: str
    expires_at: str
    address: str
    agent: str
    is_this: bool


class SetAsideOut(TypedDict):
    """
    What a master cannot work with, so that nothing is done with it.
    """

    kind: str
    item: str
    partition: int
    reason: str
    tries: int
    since: str


Severity: TypeAlias = Literal["info", "warning", "critical"]


class StartPreviewIn(TypedDict):
    """
    A start that is only thought of.
    """

    project: NotRequired[str]
    workflow: str
    version: NotRequired[int | None]
    text: NotRequired[str | None]
    parameters: NotRequired[dict[str, str]]
    logical_time: NotRequired[str | None]
    priority: NotRequired[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"] | None]
    tasks: NotRequired[list[str] | None]
    mode: NotRequired[SelectionMode | None]
    labels: NotRequired[dict[str, str | int | float | bool]]
    render: NotRequired[list[str] | None]


class StoreOut(TypedDict):
    """
    How much one table holds. Both are the database's own estimates; null: not known.
    """

    name: str
    rows: int | None
    bytes: int | None


class StoresOut(TypedDict):
    """
    How large the history is.
    """

    kind: str
    bytes: int | None
    free_bytes: int | None
    stores: list[StoreOut]


class SuccessRate(TypedDict):
    """
    How many of the last runs of a workflow have to succeed; those that were stopped are none.
    """

    below: float
    runs: NotRequired[int]


class TakeoverOut(TypedDict):
    """
    A partition that has changed hands.
    """

    id: int
    at: str
    partition: int
    epoch: int
    owner: str
    previous_owner: str | None


class Target(TypedDict):
    """
    A channel, and the addresses in it: those of e-mail; other channels may need none.
    """

    channel: str
    to: NotRequired[list[ToItem]]


class TaskCounts(TypedDict):
    """
    How many attempts a filter means. States without any are missing.
    """

    total: CountOut
    states: dict[str, CountOut]


class TaskDayOut(TypedDict):
    """
    A task on one day, for a sparkline.
    """

    day: str
    attempts: int
    failed: int
    duration_p50_s: float | None
    duration_p95_s: float | None


class TaskHits(TypedDict):
    """
    What was found in the log of one attempt of an instance.
    """

    task_instance_id: int
    task: str
    attempt: int
    hits: list[HitOut]
    problem: str | None


TaskState: TypeAlias = Literal[
    "WAITING",
    "DELAYED",
    "UP_FOR_RETRY",
    "BLOCKED",
    "PAUSED",
    "QUEUED",
    "CLAIMED",
    "RUNNING",
    "SUCCEEDED",
    "FAILED",
    "KILLED",
    "LOST",
    "SKIPPED",
    "RESCHEDULED",
]


class TaskTypeOut(TypedDict):
    """
    An installed task type.
    """

    name: str
    params_schema: dict[str, Any]


class TaskValuesOut(TypedDict):
    """
    A task in a window.
    """

    attempts: int
    succeeded: int
    failed: int
    lost: int
    killed: int
    skipped: int
    failure_rate: float | None
    retries: int
    retry_rate: float | None
    duration_p50_s: float | None
    duration_p95_s: float | None
    duration_mean_s: float | None
    duration_max_s: float | None
    wait_p50_s: float | None
    wait_p95_s: float | None
    wait_mean_s: float | None
    busy_s: float | None
    cpu_s: float | None
    max_rss_kb: int | None


class TokenIn(TypedDict):
    """
    A token for programs.
    """

    name: str
    permissions: NotRequired[list[Permission] | None]
    projects: NotRequired[list[str] | None]
    days: NotRequired[int | None]


class TokenOut(TypedDict):
    """
    A token, without its text.
    """

    id: int
    owner: str
    name: str
    permissions: list[Permission] | None
    projects: list[str] | None
    created_at: str
    used_at: str | None
    expires_at: str | None


class TotalsOut(TypedDict):
    """
    All runs that ended, and all attempts that ended, in some days.
    """

    runs: int
    succeeded: int
    failed: int
    stopped: int
    failure_rate: float | None
    late: int
    late_rate: float | None
    by_trigger: dict[str, int]
    duration_mean_s: float | None
    admission_mean_s: float | None
    attempts: int
    failed_attempts: int
    lost_attempts: int
    retries: int
    retry_rate: float | None
    wait_mean_s: float | None
    busy_s: float | None
    cpu_s: float | None


class TouchedTask(TypedDict):
    """
    A task that a request would change.
    """

    task: str
    state: TaskState
    becomes: TaskState
    ends_early: bool


Trigger: TypeAlias = Literal[
    "run.succeeded",
    "run.failed",
    "run.stopped",
    "run.timed-out",
    "run.late",
    "task.succeeded",
    "task.warned",
    "task.failed",
    "task.retrying",
    "task.timed-out",
    "task.lost",
    "backfill.done",
    "backfill.failed",
    "schedule.paused",
    "schedule.skipped",
    "workflow.not-started",
    "workflow.not-finished",
    "workflow.no-success",
    "workflow.low-success-rate",
    "worker.gone",
    "master.gone",
    "cluster.degraded",
]


class UserChange(TypedDict):
    """
    What changes of a user; what is left out stays.
    """

    full_name: NotRequired[str | None]
    is_admin: NotRequired[bool | None]
    disabled: NotRequired[bool | None]


class UserIn(TypedDict):
    """
    A new user.
    """

    name: str
    full_name: NotRequired[str]
    is_admin: NotRequired[bool]
    password: NotRequired[str | None]


class UsualOut(TypedDict):
    """
    How long something usually takes: of what succeeded in 60 days, started at such a time.
    """

    weekday: int
    hour: int
    n: int
    p50_s: float
    p95_s: float
    mad_s: float
    late_after_s: float
    wait_n: int
    wait_p50_s: float | None
    wait_p95_s: float | None
    wait_mad_s: float | None


class ValidationOut(TypedDict):
    """
    Whether a definition could be published.
    """

    valid: bool
    problems: list[ProblemField]


class ValueChange(TypedDict):
    """
    A value that differs; null: it is not there.
    """

    name: str
    one: str | None
    other: str | None


Verdict: TypeAlias = Literal["slower", "usual", "faster", "unknown"]


class VersionDetail(TypedDict):
    """
    One published version with its definition; it never changes.
    """

    version: int
    digest: str
    created_at: str
    published_by: str | None
    project: str
    name: str
    source: str | None
    definition: dict[str, Any]


class VersionOut(TypedDict):
    """
    One line of a workflow's history.
    """

    version: int
    digest: str
    created_at: str
    published_by: str | None


class WayOut(TypedDict):
    """
    A way of signing in.
    """

    name: str
    kind: Literal["password", "ldap", "oidc"]
    title: str
    path: str


Weekday: TypeAlias = Literal["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


class WorkerGroupOut(TypedDict):
    """
    Workers that do the same work, and what waits for them.
    """

    group: str
    queued: int
    workers: int
    paused: int
    slots: int
    running: int


class WorkerLoadOut(TypedDict):
    """
    A worker in the window.
    """

    worker: str
    days: int
    attempts: int
    failed: int
    lost: int
    busy_s: float
    hours: int
    slots: int
    utilisation: float | None


class WorkerOut(TypedDict):
    """
    A live worker.
    """

    id: str
    group: str
    address: str
    host: str | None
    slots: int
    running: int
    started_at: str | None
    paused: str | None
    unreachable: NotRequired[list[str]]
    logs_not_archived: NotRequired[str | None]
    clock_ahead_s: NotRequired[float | None]


class WorkflowDetail(TypedDict):
    """
    A workflow with its newest definition.
    """

    project: str
    name: str
    description: str
    owner: str
    labels: dict[str, str]
    version: int
    digest: str
    tasks: int
    created_at: str
    updated_at: str
    archived_at: str | None
    definition: dict[str, Any]


WorkflowOrder: TypeAlias = Literal["name", "-updated_at", "-last_run", "next_fire", "failing"]


WorkflowSort: TypeAlias = Literal["slower", "waits", "failures", "late", "cost"]


WorkflowState: TypeAlias = Literal[
    "QUEUED",
    "RUNNING",
    "PAUSING",
    "PAUSED",
    "STOPPING",
    "STOPPED",
    "FAILED",
    "SUCCEEDED",
]


class WorkflowTrendOut(TypedDict):
    """
    A workflow in the window and in the one before.
    """

    project: str
    workflow: str
    now: RunValuesOut
    before: RunValuesOut
    duration_change_s: float | None
    duration_ratio: float | None
    cost: CostOut
    cost_before: CostOut
    prediction: PredictionOut | None
    daily: list[RunDayOut]


class WorkflowTrendsPage(TypedDict):
    """
    A page of workflows.
    """

    items: list[WorkflowTrendOut]
    next: NotRequired[str | None]
    first: str | None
    last: str | None
    days: int
    before_first: str | None
    before_last: str | None
    before_days: int
    until: str | None


class ZooKeeperOut(TypedDict):
    """
    The API's own connection to ZooKeeper.
    """

    state: str
    session_timeout_s: float
    latency_s: NotRequired[float | None]


class Problem(TypedDict):
    """
    A problem document (RFC 9457).
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str
    errors: NotRequired[list[ProblemField]]


class StaleProblem(TypedDict):
    """
    The state is not the one that the request is about: nothing was changed.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str
    errors: NotRequired[list[ProblemField]]
    current: dict[str, Any] | None
    changes: list[dict[str, Any]]


BackfillBase: TypeAlias = Literal["logical_time", "next_day"]


FailureStrategy: TypeAlias = Literal["continue", "finish_running", "fail_fast", "ignore"]


Missed: TypeAlias = Literal["skip", "last", "all"]


Overlap: TypeAlias = Literal[
    "allow", "queue", "queue_by_priority", "queue_latest", "skip_new", "replace"
]


ParameterType: TypeAlias = Literal["string", "integer", "number", "boolean", "date"]


RunWhen: TypeAlias = Literal["all_success", "all_done", "one_success", "any_failed", "always"]


class ScheduleSpec(TypedDict):
    """
    One timetable of a workflow: it starts the newest published version at each fire time.
    """

    cron: str
    timezone: NotRequired[str | None]
    parameters: NotRequired[dict[str, str]]
    enabled: NotRequired[bool]
    priority: NotRequired[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"] | None]
    on_gap: NotRequired[Literal["shift", "skip"] | None]
    on_overlap: NotRequired[Literal["first", "last", "both"] | None]
    start: NotRequired[str | None]
    end: NotRequired[str | None]
    exclude: NotRequired[list[str]]
    calendar: NotRequired[str | None]
    missed: NotRequired[Missed]
    missed_window: NotRequired[str | float | None]


TimeoutAction: TypeAlias = Literal["fail", "warn", "both"]


WorkflowTimeoutAction: TypeAlias = Literal["warn", "stop", "both"]


class StartCommand(TypedDict):
    """
    A request to start.
    """

    type: Literal["START"]
    project: NotRequired[str | None]
    workflow: str
    version: NotRequired[int | None]
    tasks: NotRequired[list[str] | None]
    mode: NotRequired[SelectionMode | None]
    parameters: NotRequired[dict[str, str]]
    logical_time: NotRequired[str | None]
    priority: NotRequired[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"] | None]
    labels: NotRequired[dict[str, str | int | float | bool]]
    idempotency_key: NotRequired[str | None]


class RerunCommand(TypedDict):
    """
    A request to rerun.
    """

    type: Literal["RERUN"]
    instance_id: int
    idempotency_key: NotRequired[str | None]


class PauseCommand(TypedDict):
    """
    A request to pause.
    """

    type: Literal["PAUSE"]
    instance_id: int
    idempotency_key: NotRequired[str | None]


class ResumeCommand(TypedDict):
    """
    A request to resume.
    """

    type: Literal["RESUME"]
    instance_id: int
    idempotency_key: NotRequired[str | None]


class StopCommand(TypedDict):
    """
    A request to stop.
    """

    type: Literal["STOP"]
    instance_id: int
    idempotency_key: NotRequired[str | None]


class RecoverCommand(TypedDict):
    """
    A request to recover.
    """

    type: Literal["RECOVER"]
    instance_id: int
    idempotency_key: NotRequired[str | None]


class RerunTasksCommand(TypedDict):
    """
    A request to rerun tasks.
    """

    type: Literal["RERUN_TASKS"]
    instance_id: int
    tasks: list[str]
    mode: NotRequired[SelectionMode | None]
    idempotency_key: NotRequired[str | None]


class KillTaskCommand1(TypedDict):
    """
    A request to kill task.
    """

    type: Literal["KILL_TASK"]
    instance_id: NotRequired[int]
    task: NotRequired[str]
    task_instance_id: int
    idempotency_key: NotRequired[str | None]


class KillTaskCommand2(TypedDict):
    """
    A request to kill task.
    """

    type: Literal["KILL_TASK"]
    instance_id: int
    task: str
    task_instance_id: NotRequired[int]
    idempotency_key: NotRequired[str | None]


KillTaskCommand: TypeAlias = KillTaskCommand1 | KillTaskCommand2


class ForceSuccessCommand1(TypedDict):
    """
    A request to force success.
    """

    type: Literal["FORCE_SUCCESS"]
    instance_id: NotRequired[int]
    task: NotRequired[str]
    task_instance_id: int
    reason: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


class ForceSuccessCommand2(TypedDict):
    """
    A request to force success.
    """

    type: Literal["FORCE_SUCCESS"]
    instance_id: int
    task: str
    task_instance_id: NotRequired[int]
    reason: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


ForceSuccessCommand: TypeAlias = ForceSuccessCommand1 | ForceSuccessCommand2


class AlertChannelKindPage(TypedDict):
    items: list[AlertChannelKindOut]
    next: NotRequired[str | None]


class AlertChannelPage(TypedDict):
    items: list[AlertChannelOut]
    next: NotRequired[str | None]


class AlertReceiverPage(TypedDict):
    items: list[AlertReceiverOut]
    next: NotRequired[str | None]


class AlertRulePage(TypedDict):
    items: list[AlertRuleOut]
    next: NotRequired[str | None]


class AlertSilencePage(TypedDict):
    items: list[AlertSilenceOut]
    next: NotRequired[str | None]


class CalendarPage(TypedDict):
    items: list[CalendarOut]
    next: NotRequired[str | None]


class ConcurrencyGroupPage(TypedDict):
    items: list[ConcurrencyGroupOut]
    next: NotRequired[str | None]


class DataSourcePage(TypedDict):
    items: list[DataSourceOut]
    next: NotRequired[str | None]


class DayPage(TypedDict):
    items: list[DayOut]
    next: NotRequired[str | None]


class DraftPage(TypedDict):
    items: list[DraftOut]
    next: NotRequired[str | None]


class EnvironmentPage(TypedDict):
    items: list[EnvironmentOut]
    next: NotRequired[str | None]


class GrantPage(TypedDict):
    items: list[GrantOut]
    next: NotRequired[str | None]


class GroupPage(TypedDict):
    items: list[GroupOut]
    next: NotRequired[str | None]


class HappenedPage(TypedDict):
    items: list[HappenedOut]
    next: NotRequired[str | None]


class MasterPage(TypedDict):
    items: list[MasterOut]
    next: NotRequired[str | None]


class ParameterPage(TypedDict):
    items: list[ParameterOut]
    next: NotRequired[str | None]


class PartitionPage(TypedDict):
    items: list[PartitionOut]
    next: NotRequired[str | None]


class ProjectPage(TypedDict):
    items: list[ProjectOut]
    next: NotRequired[str | None]


class PurgePage(TypedDict):
    items: list[PurgeOut]
    next: NotRequired[str | None]


class QuarantinedPage(TypedDict):
    items: list[QuarantinedOut]
    next: NotRequired[str | None]


class QueueEntryPage(TypedDict):
    items: list[QueueEntryOut]
    next: NotRequired[str | None]


class ResourceGrantPage(TypedDict):
    items: list[ResourceGrantOut]
    next: NotRequired[str | None]


class ResourcePage(TypedDict):
    items: list[ResourceOut]
    next: NotRequired[str | None]


class RestrictionPage(TypedDict):
    items: list[RestrictionOut]
    next: NotRequired[str | None]


class RollupPage(TypedDict):
    items: list[RollupOut]
    next: NotRequired[str | None]


class SchedulePage(TypedDict):
    items: list[ScheduleOut]
    next: NotRequired[str | None]


class SecretPage(TypedDict):
    items: list[SecretOut]
    next: NotRequired[str | None]


class SessionPage(TypedDict):
    items: list[SessionOut]
    next: NotRequired[str | None]


class TakeoverPage(TypedDict):
    items: list[TakeoverOut]
    next: NotRequired[str | None]


class TaskTypePage(TypedDict):
    items: list[TaskTypeOut]
    next: NotRequired[str | None]


class TokenPage(TypedDict):
    items: list[TokenOut]
    next: NotRequired[str | None]


class VersionPage(TypedDict):
    items: list[VersionOut]
    next: NotRequired[str | None]


class WayPage(TypedDict):
    items: list[WayOut]
    next: NotRequired[str | None]


class WorkerGroupPage(TypedDict):
    items: list[WorkerGroupOut]
    next: NotRequired[str | None]


class WorkerPage(TypedDict):
    items: list[WorkerOut]
    next: NotRequired[str | None]


class AccountOut(TypedDict):
    """
    A user or a service account.
    """

    name: str
    kind: PrincipalKind
    full_name: str
    project: str | None
    is_admin: bool
    has_password: bool
    must_change_password: bool
    issuer: str | None
    subject: str | None
    created_at: str
    disabled_at: str | None


class AlertDeliveryDetail(TypedDict):
    """
    A message with every attempt to send it.
    """

    id: int
    rule: str
    receiver: str
    channel: str
    recipients: list[str]
    kind: DeliveryKind
    state: DeliveryState
    due_at: str
    tries: int
    created_at: str
    sent_at: str | None
    answer: str | None
    attempts: list[AlertAttemptOut]
    alerts: list[int]


class AlertDeliveryOut(TypedDict):
    """
    A message to one place.
    """

    id: int
    rule: str
    receiver: str
    channel: str
    recipients: list[str]
    kind: DeliveryKind
    state: DeliveryState
    due_at: str
    tries: int
    created_at: str
    sent_at: str | None
    answer: str | None


class AlertDetail(TypedDict):
    """
    An alert, and who was notified of it.
    """

    id: int
    project: str
    rule: str
    trigger: Trigger
    severity: Severity
    state: AlertState
    workflow: str
    instance_id: int | None
    logical_time: str | None
    task: str | None
    task_instance_id: int | None
    at: str
    reason: str | None
    resolved_at: str | None
    acknowledged_at: str | None
    acknowledged_by: str | None
    told_at: str | None
    silenced_by: int | None
    next_at: str | None
    deliveries: list[AlertDeliveryOut]


class AlertOut(TypedDict):
    """
    Something that a rule is about has happened.
    """

    id: int
    project: str
    rule: str
    trigger: Trigger
    severity: Severity
    state: AlertState
    workflow: str
    instance_id: int | None
    logical_time: str | None
    task: str | None
    task_instance_id: int | None
    at: str
    reason: str | None
    resolved_at: str | None
    acknowledged_at: str | None
    acknowledged_by: str | None
    told_at: str | None
    silenced_by: int | None
    next_at: str | None


class AlertVerdictOut(TypedDict):
    """
    What a rule made of something that happened.
    """

    rule: str
    reason: str | None
    alert: AlertDetail | None


class AuditEntryOut(TypedDict):
    """
    Who did what. What is hashed is this very object.
    """

    id: int
    at: str
    action: str
    outcome: Outcome
    principal_id: int | None
    principal: str
    address: str
    request_id: str
    project: str
    object: str
    detail: dict[str, Any]


class AuditLinkOut(TypedDict):
    """
    A place in the chain: the hash of its entry's JSON behind the hash before it.
    """

    position: int
    hash: str
    previous: str
    entry: AuditEntryOut | None


BackfillIn = TypedDict(
    "BackfillIn",
    {
        "project": NotRequired[str],
        "workflow": str,
        "version": NotRequired[int | None],
        "from": NotRequired[str | None],
        "to": NotRequired[str | None],
        "by": NotRequired[By | None],
        "dates": NotRequired[list[Date]],
        "only": NotRequired[Only | None],
        "order": NotRequired[DateOrder],
        "parallel": NotRequired[int],
        "tasks": NotRequired[list[str]],
        "mode": NotRequired[SelectionMode],
        "parameters": NotRequired[dict[str, str]],
        "on_failure": NotRequired[Literal["stop", "continue"] | int | None],
        "reprocess": NotRequired[Reprocess],
        "downstream": NotRequired[Downstream],
        "priority": NotRequired[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]],
        "labels": NotRequired[dict[str, str | int | float | bool]],
    },
)


class BackfillOut(TypedDict):
    """
    A backfill and how far it has come.
    """

    id: int
    project: str
    workflow: str
    state: BackfillState
    reason: str | None
    request: dict[str, Any]
    counts: dict[str, int]
    total: int
    requested_by: str
    command_id: int
    created_at: str
    finished_at: str | None


class BackfillRunOut(TypedDict):
    """
    One date of a backfill.
    """

    position: int
    project: str
    workflow: str
    logical_time: str
    state: BackfillRunState
    reason: str | None
    tries: int
    instance_id: int | None


class Bar(TypedDict):
    """
    One attempt in time.
    """

    task_instance_id: int
    task: str
    attempt: int
    state: TaskState
    queued_at: str | None
    started_at: str | None
    finished_at: str | None
    is_critical: bool


class BulkIn(TypedDict):
    """
    What is asked, and of which: the ids, or, without them, the filters of the query.
    """

    type: Literal[
        "PAUSE",
        "RESUME",
        "STOP",
        "RECOVER",
        "RERUN",
        "RERUN_TASKS",
        "KILL_TASK",
        "FORCE_SUCCESS",
    ]
    ids: NotRequired[list[int] | None]
    tasks: NotRequired[list[str] | None]
    mode: NotRequired[SelectionMode | None]
    reason: NotRequired[str | None]
    digest: NotRequired[str | None]


class BulkSchedule(TypedDict):
    """
    What became of one of many: the schedule as it is now, or a problem.
    """

    id: int
    schedule: ScheduleOut | None
    problem: ItemProblem | None


class BulkSchedulesOut(TypedDict):
    """
    One result for each.
    """

    is_more: bool
    items: list[BulkSchedule]


class ChangeOut(TypedDict):
    """
    One value that differs between two versions.
    """

    op: Op
    path: str
    before: NotRequired[Any]
    after: NotRequired[Any]


class ClusterOut(TypedDict):
    """
    The members, and what each does.
    """

    masters: list[MasterOut]
    workers: list[WorkerOut]
    group: MasterGroupOut
    partitions: list[PartitionOut]
    backlog: BacklogOut | None
    set_aside: list[SetAsideOut]
    queues: list[QueueOut]
    zookeeper: ZooKeeperOut
    database: DatabaseOut
    history: NotRequired[HistoryExportOut | None]
    alert_servers: list[str] | None
    damaged_znodes: list[DamagedZnodeOut]


CommandIn: TypeAlias = (
    StartCommand
    | RerunCommand
    | PauseCommand
    | ResumeCommand
    | StopCommand
    | RecoverCommand
    | RerunTasksCommand
    | KillTaskCommand
    | ForceSuccessCommand
)


class CommandOut(TypedDict):
    """
    A stored command and what became of it.
    """

    id: int
    type: CommandType
    state: CommandState
    reason: str | None
    instance_id: int | None
    result_instance_id: int | None
    version: int | None
    parameters: dict[str, str]
    logical_time: str | None
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"] | None
    tasks: list[str] | None
    mode: SelectionMode | None
    task: str | None
    labels: dict[str, str]
    detail: dict[str, Any]
    idempotency_key: str
    schedule_id: int | None
    backfill_id: int | None
    requested_by: str
    created_at: str
    handled_at: str | None


class ComparedOut(TypedDict):
    """
    What took some time, beside what is usual.
    """

    verdict: Verdict
    took_s: float | None
    waited_s: float | None
    difference_s: float | None
    wait_difference_s: float | None
    usual: UsualOut | None


class ComparedTaskOut(TypedDict):
    """
    The newest attempt of a task.
    """

    verdict: Verdict
    took_s: float | None
    waited_s: float | None
    difference_s: float | None
    wait_difference_s: float | None
    usual: UsualOut | None
    task: str
    task_instance_id: int
    attempt: int
    state: TaskState
    is_critical: bool
    path_wait_s: float | None
    effect_s: float | None


class CostGroupOut(TypedDict):
    """
    What a project, workflow, task or label has used; what does not name it is null.
    """

    project: str | None
    workflow: str | None
    task: str | None
    label: str | None
    value: str | None
    now: CostOut
    before: CostOut
    share: float | None


class CostsPage(TypedDict):
    """
    A page of costs, the most seconds of slots first.
    """

    items: list[CostGroupOut]
    next: NotRequired[str | None]
    first: str | None
    last: str | None
    days: int
    before_first: str | None
    before_last: str | None
    before_days: int
    until: str | None
    by: CostBy
    total: CostOut
    before: CostOut


class DataSourceKindOut(TypedDict):
    """
    What a kind of data source takes: enough to make a form of it.
    """

    kind: str
    title: str
    port: int | None
    host: FieldNeed
    database: FieldNeed
    database_is: str
    user: FieldNeed
    password: FieldNeed
    credential: str
    options_schema: dict[str, Any]


class Deadline(TypedDict):
    """
    A time of day by which a run of the day has begun or succeeded; fixed, or a usual one.

    With ``at`` the runs of the 24 hours before it count, by their logical times. With
    ``percentile`` the runs of the calendar day count; the deadline is when so many of the last
    ``runs`` had begun or ended, by the clock, and ``margin`` later.
    """

    at: NotRequired[str | None]
    percentile: NotRequired[float | None]
    runs: NotRequired[int]
    margin: NotRequired[str | float]
    days: NotRequired[list[Weekday]]
    timezone: NotRequired[str]


class DependenciesOut(TypedDict):
    """
    The workflows around one, by the newest definitions.
    """

    project: str
    name: str
    upstream: list[NamedOut]
    downstream: list[NamedOut]
    hidden: int


class DependencyRun(TypedDict):
    """
    A run in the window of its workflow.
    """

    id: int
    state: WorkflowState
    logical_time: str
    started_at: str | None
    finished_at: str | None


class DependencyTask(TypedDict):
    """
    Why a workflow waits: one of its tasks names the other one.
    """

    task: str
    kind: LogicKind
    date: str | None
    of_task: str | None


class EffectOut(TypedDict):
    """
    What a request would do to one run, as it is now.
    """

    refusal: str | None
    state: WorkflowState | None
    tasks: list[TouchedTask] | None
    more_tasks: int


class FailureGroupOut(TypedDict):
    """
    Attempts that failed with the same fingerprint, in all workflows that the caller sees.
    """

    fingerprint: str
    sample: str
    count: int
    first_seen: str | None
    last_seen: str | None
    workflows: int
    by_day: list[CountOfDay]
    where: list[FailurePlaceOut]
    is_more: bool


class FailureGroupsPage(TypedDict):
    """
    A page of groups, the most first.
    """

    items: list[FailureGroupOut]
    next: NotRequired[str | None]
    first: str | None
    last: str | None
    days: int
    before_first: str | None
    before_last: str | None
    before_days: int
    until: str | None
    total: int


class FindingOut(TypedDict):
    """
    What one layer says.
    """

    layer: Layer
    text: str
    code: Code
    arguments: dict[str, str | int | float | None]
    waits: bool
    instance_id: int | None
    task_instance_id: int | None


class GridLegend(TypedDict):
    """
    What a character means. They never change; new ones may come.
    """

    cell: str
    state: TaskState | None
    means: str


class GridRun(TypedDict):
    """
    A run with the states of its tasks.
    """

    id: int
    version: int
    state: WorkflowState
    logical_time: str
    run_number: int
    backfill_id: int | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cells: str


class HangingOut(TypedDict):
    """
    What hangs on a workflow.
    """

    open_runs: int
    open_run_ids: list[int]
    schedules: int
    backfills: int
    drafts: int
    downstream: list[NamedOut]
    hidden: int


class ImportItem(TypedDict):
    """
    What became of one document.
    """

    kind: Literal["workflow", "calendar", "concurrency-group"]
    name: str
    line: int
    result: Literal["created", "changed", "unchanged", "refused"]
    version: int | None
    problems: list[ProblemField]


class ImportOut(TypedDict):
    """
    What an import did, or with `dry_run` would do: everything or nothing.
    """

    project: str
    dry_run: bool
    stored: bool
    items: list[ImportItem]


class InstanceHits(TypedDict):
    """
    What was found in the logs of an instance. Attempts without hits are left out.
    """

    items: list[TaskHits]
    next: str | None


class InstanceOut(TypedDict):
    """
    One run of a workflow.
    """

    id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    reason: str | None
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
    parameters: dict[str, str]
    logical_time: str
    timezone: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    deadline_at: str | None
    is_late: bool
    expected_end_at: str | None
    late_after_at: str | None
    rerun_of: int | None
    run_number: int
    command_id: int
    parent: ParentOut | None
    task_counts: dict[str, int]
    labels: dict[str, str]
    schedule_id: int | None
    backfill_id: int | None
    reason_said: SaidOut | None


class InstanceTask(TypedDict):
    """
    An attempt and its place in the graph.
    """

    id: int
    workflow_instance_id: int
    project: str
    workflow: str
    task: str
    type: str
    attempt: int
    state: TaskState
    worker_group: str
    worker: str | None
    reason: str | None
    exit_code: int | None
    due_at: str | None
    looks: int
    waiting_since: str | None
    queued_at: str | None
    started_at: str | None
    finished_at: str | None
    environment: str | None
    cpu_s: float | None
    max_rss_kb: int | None
    error_line: str | None
    fingerprint: str | None
    depends_on: list[str]
    detail: dict[str, Any]
    reason_said: SaidOut | None


class LastRunOut(TypedDict):
    """
    A run as lists of workflows show it.
    """

    id: int
    version: int
    state: WorkflowState
    logical_time: str
    started_at: str | None
    finished_at: str | None


class LateOut(TypedDict):
    """
    Something that should have happened by now.
    """

    said: SaidOut
    since: str
    instance_id: int | None
    schedule_id: int | None


class LayoutIn(TypedDict):
    """
    Where tasks are on the canvas. It replaces what was there.
    """

    places: dict[str, PlaceIn]
    groups: NotRequired[dict[str, list[str]]]
    folded: NotRequired[list[FoldedItem]]


class LayoutOut(TypedDict):
    """
    Positions of tasks on the canvas; without positions the layout is automatic.
    """

    places: dict[str, PlaceOut]
    groups: dict[str, list[str]]
    folded: list[str]
    updated_at: str | None
    updated_by: str | None


class LoadOut(TypedDict):
    """
    How full the cluster was, by hour of the week and by worker, and what is to come.
    """

    first: str | None
    last: str | None
    days: int
    before_first: str | None
    before_last: str | None
    before_days: int
    until: str | None
    groups: list[LoadGroupOut]
    workers: list[WorkerLoadOut]
    forecast_of: str | None
    forecast: list[ForecastOut]


class MeOut(TypedDict):
    """
    The caller, and what it may do.
    """

    name: str
    kind: PrincipalKind
    is_admin: bool
    must_change_password: bool
    has_password: bool
    issuer: str | None
    roles: list[RoleOut]
    permissions: list[Permission] | None
    projects: list[str] | None


class Member(TypedDict):
    """
    A person who can be notified, in one way or several.
    """

    name: NotRequired[str]
    targets: list[Target]


class MemberIn(TypedDict):
    """
    The role of a member.
    """

    role: Role


class MemberOut(TypedDict):
    """
    Who has a role in a project.
    """

    kind: HolderKind
    name: str
    role: Role


class NewTokenOut(TypedDict):
    """
    A token that was just made.
    """

    id: int
    owner: str
    name: str
    permissions: list[Permission] | None
    projects: list[str] | None
    created_at: str
    used_at: str | None
    expires_at: str | None
    token: str


class NewUserOut(TypedDict):
    """
    A user with a password that was made just now.
    """

    name: str
    kind: PrincipalKind
    full_name: str
    project: str | None
    is_admin: bool
    has_password: bool
    must_change_password: bool
    issuer: str | None
    subject: str | None
    created_at: str
    disabled_at: str | None
    password: str | None


class PastAttemptOut(TypedDict):
    """
    An attempt that has ended, as it was exported.
    """

    id: int
    task: str
    type: str
    worker_group: str
    worker: str | None
    attempt: int
    state: TaskState
    reason: str | None
    exit_code: int | None
    forced: bool
    waiting_since: str | None
    queued_at: str | None
    started_at: str | None
    finished_at: str
    cpu_s: float | None
    max_rss_kb: int | None
    error_line: str | None
    fingerprint: str | None


class PastInstanceDetail(TypedDict):
    """
    A run of the past with its attempts and its plan.
    """

    id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    reason: str | None
    trigger: str
    schedule_id: int | None
    backfill_id: int | None
    parent_instance_id: int | None
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
    logical_time: str
    created_at: str
    admitted_at: str | None
    started_at: str | None
    finished_at: str
    deadline_at: str | None
    late_at: str | None
    labels: dict[str, str]
    in_database: bool
    attempts: list[PastAttemptOut]
    attempts_left_out: int
    tasks: list[PastTaskOut] | None


class PastInstanceOut(TypedDict):
    """
    A run that has ended, as it was exported.
    """

    id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    reason: str | None
    trigger: str
    schedule_id: int | None
    backfill_id: int | None
    parent_instance_id: int | None
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
    logical_time: str
    created_at: str
    admitted_at: str | None
    started_at: str | None
    finished_at: str
    deadline_at: str | None
    late_at: str | None
    labels: dict[str, str]
    in_database: bool


class PlanOut(TypedDict):
    """
    What a backfill would run, as of now.
    """

    total: int
    to_run: int
    runs: list[PlannedOut]


class PlannedTask(TypedDict):
    """
    A task of a run that there is not.
    """

    task: str
    type: str
    depends_on: list[str]
    worker_group: str
    runs: bool
    rendered: RenderedOut | None


class PublishOut(TypedDict):
    """
    What publishing did, or with `dry_run` would do.
    """

    project: str
    name: str
    version: int
    created: bool
    dry_run: bool
    digest: str
    diff: list[ChangeOut]
    warnings: NotRequired[list[str]]


class QuarantineOut(TypedDict):
    """
    Everything that is quarantined, of all consumers.
    """

    held: int
    skipped: int
    newest: list[QuarantinedOut]


class QuietHours(TypedDict):
    """
    Hours of some days, in a zone. ``until`` may be earlier than ``since``: the next day.
    """

    since: str
    until: str
    days: NotRequired[list[Weekday]]
    timezone: NotRequired[str]


class RuleSpec(TypedDict):
    """
    A rule as people define it, without its name.
    """

    triggers: list[Trigger]
    workflows: NotRequired[list[Workflow]]
    tasks: NotRequired[list[Task]]
    labels: NotRequired[list[Label]]
    receivers: list[Receiver]
    deadline: NotRequired[Deadline | None]
    no_success_for: NotRequired[str | float | None]
    success_rate: NotRequired[SuccessRate | None]
    severity: NotRequired[Severity]
    enabled: NotRequired[bool]
    group_for: NotRequired[str | float]
    repeat_every: NotRequired[str | float | None]
    tell_recovery: NotRequired[bool]
    quiet: NotRequired[list[QuietHours]]
    escalation: NotRequired[list[Escalation]]
    language: NotRequired[Language]
    templates: NotRequired[MessageTemplates]
    description: NotRequired[str]


class RunSide(TypedDict):
    """
    One of two runs.
    """

    instance_id: int
    version: int
    state: WorkflowState
    logical_time: str
    started_at: str | None
    seconds: float | None


class ScheduleMinutesOut(TypedDict):
    """
    Hot minutes, and which schedules to move.
    """

    until: str | None
    minutes: list[ScheduleMinuteOut] | None
    moves: list[ScheduleMoveOut]


class SlotUserOut(TypedDict):
    """
    An attempt that has a slot, or waits for one.
    """

    task_instance_id: int
    workflow_instance_id: int
    workflow: str
    task: str
    attempt: int
    state: TaskState
    granted_at: str | None


class StartPreview(TypedDict):
    """
    The run that a start would make.
    """

    project: str
    workflow: str
    version: int
    logical_time: str
    timezone: str
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
    parameters: dict[str, str]
    labels: dict[str, str]
    tasks: list[PlannedTask]


class SummaryOut(TypedDict):
    """
    All that the caller sees, added up: by day, in the window, and in the window before.
    """

    first: str | None
    last: str | None
    days: int
    before_first: str | None
    before_last: str | None
    before_days: int
    until: str | None
    total: TotalsOut
    before: TotalsOut
    daily: list[DayTotalsOut]


class TaskChangeOut(TypedDict):
    """
    A task that both versions have, and what differs; paths are within the task.
    """

    task: str
    changes: list[ChangeOut]


class TaskDetail(TypedDict):
    """
    One attempt with what it has given on.
    """

    id: int
    workflow_instance_id: int
    project: str
    workflow: str
    task: str
    type: str
    attempt: int
    state: TaskState
    worker_group: str
    worker: str | None
    reason: str | None
    exit_code: int | None
    due_at: str | None
    looks: int
    waiting_since: str | None
    queued_at: str | None
    started_at: str | None
    finished_at: str | None
    environment: str | None
    cpu_s: float | None
    max_rss_kb: int | None
    error_line: str | None
    fingerprint: str | None
    detail: dict[str, Any]
    outputs: dict[str, str]
    reason_said: SaidOut | None


class TaskOut(TypedDict):
    """
    One attempt of one task.
    """

    id: int
    workflow_instance_id: int
    project: str
    workflow: str
    task: str
    type: str
    attempt: int
    state: TaskState
    worker_group: str
    worker: str | None
    reason: str | None
    exit_code: int | None
    due_at: str | None
    looks: int
    waiting_since: str | None
    queued_at: str | None
    started_at: str | None
    finished_at: str | None
    environment: str | None
    cpu_s: float | None
    max_rss_kb: int | None
    error_line: str | None
    fingerprint: str | None
    reason_said: SaidOut | None


class TaskSide(TypedDict):
    """
    The newest attempt of a task in one of two runs.
    """

    attempt: int
    state: TaskState
    seconds: float | None
    worker: str | None


class TaskTrendOut(TypedDict):
    """
    A task in the window and in the one before.
    """

    task: str
    type: str
    now: TaskValuesOut
    before: TaskValuesOut
    duration_change_s: float | None
    duration_ratio: float | None
    critical: CriticalOut | None
    flapping: FlappingOut | None
    daily: list[TaskDayOut]


class TaskTrendsPage(TypedDict):
    """
    A page of the tasks of a workflow, what was busy for longest first.
    """

    items: list[TaskTrendOut]
    next: NotRequired[str | None]
    first: str | None
    last: str | None
    days: int
    before_first: str | None
    before_last: str | None
    before_days: int
    until: str | None
    project: str
    workflow: str


class Timeline(TypedDict):
    """
    When the attempts of an instance waited and worked.
    """

    started_at: str | None
    finished_at: str | None
    critical_path: list[str]
    critical_s: float
    bars: list[Bar]


class TodayRun(TypedDict):
    """
    A run in a lane.
    """

    id: int
    version: int
    state: WorkflowState
    reason: str | None
    logical_time: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    is_resolved: bool
    waits_for: SaidOut | None
    expected_end_at: str | None
    late_after_at: str | None
    reason_said: SaidOut | None


class WhyOut(TypedDict):
    """
    What an instance or an attempt waits for, from the outermost layer to the innermost.
    """

    instance_id: int
    task_instance_id: int | None
    task: str | None
    project: str
    workflow: str
    state: str
    findings: list[FindingOut]


class WorkflowOut(TypedDict):
    """
    A workflow and its newest version; in lists with what it did last and does next.
    """

    project: str
    name: str
    description: str
    owner: str
    labels: dict[str, str]
    version: int
    digest: str
    tasks: int
    created_at: str
    updated_at: str
    archived_at: str | None
    next_fire_at: str | None
    last_runs: list[LastRunOut] | None


class ParameterSpec(TypedDict):
    """
    One parameter of a workflow. Without a default it must be given at every launch.
    """

    default: NotRequired[str | None]
    type: NotRequired[ParameterType]
    description: NotRequired[str]


class TaskSpec(TypedDict):
    """
    One node of the DAG.
    """

    name: str
    type: str
    params: NotRequired[dict[str, Any]]
    parameters: NotRequired[dict[str, str]]
    depends_on: NotRequired[list[str]]
    run_when: NotRequired[RunWhen]
    description: NotRequired[str]
    enabled: NotRequired[bool]
    priority: NotRequired[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]]
    worker_group: NotRequired[str]
    environment: NotRequired[str | None]
    concurrency_group: NotRequired[str | None]
    delay: NotRequired[str | float]
    retries: NotRequired[int]
    retry_delay: NotRequired[str | float]
    retry_backoff: NotRequired[float]
    retry_max_delay: NotRequired[str | float | None]
    retry_jitter: NotRequired[float]
    timeout: NotRequired[str | float | None]
    timeout_action: NotRequired[TimeoutAction]
    outputs_from_log: NotRequired[bool]
    resources: NotRequired[list[str]]
    publish: NotRequired[dict[str, str]]


class WorkflowSpec(TypedDict):
    """
    A whole workflow definition as one version stores it.
    """

    project: NotRequired[str]
    name: NotRequired[str]
    description: NotRequired[str]
    owner: NotRequired[str]
    labels: NotRequired[dict[str, str | int | float | bool]]
    parameters: NotRequired[dict[str, ParameterSpec]]
    timezone: NotRequired[str]
    priority: NotRequired[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]]
    on_failure: NotRequired[FailureStrategy]
    timeout: NotRequired[str | float | None]
    timeout_action: NotRequired[WorkflowTimeoutAction]
    deadline: NotRequired[str | float | None]
    overlap: NotRequired[Overlap]
    max_active: NotRequired[int]
    max_queued: NotRequired[int]
    backfill_base: NotRequired[BackfillBase]
    environment: NotRequired[str | None]
    schedules: NotRequired[list[ScheduleSpec]]
    tasks: list[TaskSpec]


class AccountPage(TypedDict):
    items: list[AccountOut]
    next: NotRequired[str | None]


class AlertDeliveryPage(TypedDict):
    items: list[AlertDeliveryOut]
    next: NotRequired[str | None]


class AlertPage(TypedDict):
    items: list[AlertOut]
    next: NotRequired[str | None]


class AuditEntryPage(TypedDict):
    items: list[AuditEntryOut]
    next: NotRequired[str | None]


class BackfillPage(TypedDict):
    items: list[BackfillOut]
    next: NotRequired[str | None]


class BackfillRunPage(TypedDict):
    items: list[BackfillRunOut]
    next: NotRequired[str | None]


class DataSourceKindPage(TypedDict):
    items: list[DataSourceKindOut]
    next: NotRequired[str | None]


class InstancePage(TypedDict):
    items: list[InstanceOut]
    next: NotRequired[str | None]


class MemberPage(TypedDict):
    items: list[MemberOut]
    next: NotRequired[str | None]


class PastInstancePage(TypedDict):
    items: list[PastInstanceOut]
    next: NotRequired[str | None]


class TaskPage(TypedDict):
    items: list[TaskOut]
    next: NotRequired[str | None]


class WorkflowPage(TypedDict):
    items: list[WorkflowOut]
    next: NotRequired[str | None]


class AlertExplanationOut(TypedDict):
    """
    Something that happened, and what the rules of the project made of it.
    """

    event_id: int
    at: str
    trigger: Trigger
    workflow: str
    task: str | None
    instance_id: int | None
    reason: str | None
    rules: list[AlertVerdictOut]


class AlertPreviewIn(TypedDict):
    """
    A rule, and the notifications it would send.
    """

    rule: RuleSpec
    alert_id: NotRequired[int | None]


class AlertReceiverIn(TypedDict):
    """
    A receiver.
    """

    members: list[Member]
    rotation: NotRequired[Rotation | None]
    description: NotRequired[str]


class AlertRuleIn(TypedDict):
    """
    A rule.
    """

    triggers: list[Trigger]
    workflows: NotRequired[list[Workflow]]
    tasks: NotRequired[list[Task]]
    labels: NotRequired[list[Label]]
    receivers: list[Receiver]
    deadline: NotRequired[Deadline | None]
    no_success_for: NotRequired[str | float | None]
    success_rate: NotRequired[SuccessRate | None]
    severity: NotRequired[Severity]
    enabled: NotRequired[bool]
    group_for: NotRequired[str | float]
    repeat_every: NotRequired[str | float | None]
    tell_recovery: NotRequired[bool]
    quiet: NotRequired[list[QuietHours]]
    escalation: NotRequired[list[Escalation]]
    language: NotRequired[Language]
    templates: NotRequired[MessageTemplates]
    description: NotRequired[str]


class BackfillAccepted(TypedDict):
    """
    The answer to a request for a backfill.
    """

    plan: PlanOut | None
    command: CommandOut | None


class BaselineOut(TypedDict):
    """
    A run against what is usual for it: the run, and its tasks, those first that made it slower.

    Without results, `of` is null and all verdicts are `unknown`.
    """

    instance_id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    of: str | None
    started_at: str | None
    finished_at: str | None
    late_after_at: str | None
    expected_end_at: str | None
    expected_by: Basis | None
    run: ComparedOut
    tasks: list[ComparedTaskOut]


class BulkItem(TypedDict):
    """
    What became of one of many: a preview, a command, or a problem.
    """

    id: int
    command_id: int | None
    problem: ItemProblem | None
    preview: EffectOut | None


class BulkOut(TypedDict):
    """
    One result for each.
    """

    digest: str
    is_more: bool
    items: list[BulkItem]


class ComparisonOut(TypedDict):
    """
    What differs between two versions of a definition.
    """

    fields: list[ChangeOut]
    parameters: list[ChangeOut]
    schedules: list[ChangeOut]
    tasks_added: list[str]
    tasks_removed: list[str]
    tasks_changed: list[TaskChangeOut]
    edges_added: list[EdgeOut]
    edges_removed: list[EdgeOut]
    text: str | None


class ConcurrencyGroupDetail(TypedDict):
    """
    A group with the tasks that use it, up to 100 of each kind.
    """

    project: str
    name: str
    description: str
    slots: int
    taken: int
    waiting: int
    updated_at: str
    holders: list[SlotUserOut]
    waiters: list[SlotUserOut]


class DependencyEdge(TypedDict):
    """
    `target` waits for `source`.
    """

    source: str
    target: str
    tasks: list[DependencyTask]
    is_allowed: bool
    since: str
    until: str
    run: DependencyRun | None


class DependencyNode(TypedDict):
    """
    A workflow, and its runs in the window of logical time that counts for the day.
    """

    id: str
    project: str
    workflow: str
    is_known: bool
    timezone: str | None
    distance: int
    since: str
    until: str
    state: WorkflowState | None
    runs: list[DependencyRun]
    has_more: bool
    started_at: str | None
    finished_at: str | None
    hidden: int


class DiffOut(TypedDict):
    """
    What differs between two published versions.
    """

    fields: list[ChangeOut]
    parameters: list[ChangeOut]
    schedules: list[ChangeOut]
    tasks_added: list[str]
    tasks_removed: list[str]
    tasks_changed: list[TaskChangeOut]
    edges_added: list[EdgeOut]
    edges_removed: list[EdgeOut]
    text: str | None
    project: str
    name: str
    base: int
    version: int


class GridOut(TypedDict):
    """
    Runs by tasks.
    """

    project: str
    workflow: str
    tasks: list[GridTask]
    runs: list[GridRun]
    legend: list[GridLegend]
    next: str | None


class Health(TypedDict):
    """
    Whether the cluster can do its work.
    """

    status: Literal["ok", "degraded"]
    checks: Checks
    masters: int
    workers: int
    version: str
    master_troubles: NotRequired[list[str]]
    quarantine: NotRequired[QuarantineOut | None]
    findings: NotRequired[list[HealthFinding]]
    clock_differences: NotRequired[list[ClockDifference]]
    longest_steps: NotRequired[list[LongestStep]]


class InstanceDetail(TypedDict):
    """
    A run with its tasks in the order of the definition.
    """

    id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    reason: str | None
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
    parameters: dict[str, str]
    logical_time: str
    timezone: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    deadline_at: str | None
    is_late: bool
    expected_end_at: str | None
    late_after_at: str | None
    rerun_of: int | None
    run_number: int
    command_id: int
    parent: ParentOut | None
    task_counts: dict[str, int]
    labels: dict[str, str]
    schedule_id: int | None
    backfill_id: int | None
    tasks: list[InstanceTask]
    reason_said: SaidOut | None


class LaneOut(TypedDict):
    """
    A workflow around now.
    """

    project: str
    workflow: str
    rank: str
    runs: list[TodayRun]
    is_more: bool
    late: list[LateOut]
    next_fires: list[FireOut]


class TaskChange(TypedDict):
    """
    A task in both runs; null: one has no such task.
    """

    task: str
    one: TaskSide | None
    other: TaskSide | None
    differs: bool
    slower_s: float | None


class TodayOut(TypedDict):
    """
    The window, how many workflows stand for what, and a page of them.
    """

    items: list[LaneOut]
    next: NotRequired[str | None]
    since: str
    until: str
    now: str
    ranks: dict[str, int]
    is_more: bool


class WorkflowPlanOut(TypedDict):
    """
    What publishing would do, now. Nothing was stored.
    """

    project: str
    name: str
    base: int
    version: int
    created: bool
    digest: str
    comparison: ComparisonOut
    schedules: list[SchedulePlanOut]
    hanging: HangingOut


class AlertExplanationPage(TypedDict):
    items: list[AlertExplanationOut]
    next: NotRequired[str | None]


class Comparison(TypedDict):
    """
    How two runs differ. Tasks come in the order of the other's definition.
    """

    one: RunSide
    other: RunSide
    parameters: list[ValueChange]
    labels: list[ValueChange]
    tasks: list[TaskChange]


class DependencyGraphOut(TypedDict):
    """
    Workflows and which wait for which. A workflow may wait for itself, of another day.
    """

    date: str
    nodes: list[DependencyNode]
    edges: list[DependencyEdge]
    critical: list[str]
    is_cut: bool
