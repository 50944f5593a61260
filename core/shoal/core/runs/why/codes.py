"""What is said, for people and for programs: sentences, their codes and arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Code(StrEnum):
    """What is said, for programs: clients may say it in another language.

    A code keeps its meaning and its arguments. ``docs/codes.md`` has them all.
    """

    CHILD_INSTANCE = "child.instance"
    CHILD_ITEMS = "child.items"
    CHILD_MORE = "child.more"
    CHILD_QUARANTINED = "child.quarantined"
    CHILD_STARTING = "child.starting"
    DELAY_LOOK = "delay.look"
    DELAY_RETRY = "delay.retry"
    DELAY_START = "delay.start"
    DEPENDENCY_LOOKING = "dependency.looking"
    DEPENDENCY_NO_WORKFLOW = "dependency.no_workflow"
    DEPENDENCY_RUN = "dependency.run"
    INSTANCE_MORE_TASKS = "instance.more_tasks"
    INSTANCE_QUARANTINED = "instance.quarantined"
    LOOK_WAITS = "look.waits"
    OVERLAP_ADMITS = "overlap.admits"
    OVERLAP_INSTANCE = "overlap.instance"
    OVERLAP_LINEUP = "overlap.lineup"
    PARTITION_OWNER = "partition.owner"
    PARTITION_UNOWNED = "partition.unowned"
    PARTITION_WORKS = "partition.works"
    QUEUE_ARRIVING = "queue.arriving"
    QUEUE_PLACE = "queue.place"
    RESULT_INSTANCE = "result.instance"
    RESULT_NEWER_ATTEMPT = "result.newer_attempt"
    RESULT_TASK = "result.task"
    SLOTS_HOLDER = "slots.holder"
    SLOTS_NO_GROUP = "slots.no_group"
    SLOTS_TAKEN = "slots.taken"
    TASK_HELD = "task.held"
    UPSTREAM_MORE = "upstream.more"
    UPSTREAM_RULE = "upstream.rule"
    UPSTREAM_TASK = "upstream.task"
    UPSTREAM_WAITING = "upstream.waiting"
    WORKERS_NONE = "workers.none"
    WORKERS_PAUSED = "workers.paused"
    WORKERS_RUNS = "workers.runs"
    WORKERS_SLOTS = "workers.slots"
    WORKERS_STARTING = "workers.starting"
    RUN_OVERLAP = "run.overlap"
    RUN_STARTING = "run.starting"
    RUN_PAUSED = "run.paused"
    RUN_STOPPING = "run.stopping"
    RUN_OVERDUE = "run.overdue"
    RUN_LATE = "run.late"
    RUN_EXPECTED = "run.expected"
    RUN_SLOWER = "run.slower"
    TASKS_BLOCKED = "tasks.blocked"
    TASKS_QUEUED = "tasks.queued"
    TASKS_DELAYED = "tasks.delayed"
    FIRE_LATE = "fire.late"
    # Of reasons that are stored: see ``reasons.py``.
    REASON_BACKFILL_CANCELLED = "reason.backfill_cancelled"
    REASON_CHILD = "reason.child"
    REASON_CHILD_QUARANTINED = "reason.child_quarantined"
    REASON_CHILD_REFUSED = "reason.child_refused"
    REASON_CLAIM_GONE = "reason.claim_gone"
    REASON_DEPENDENCY_MISSING = "reason.dependency_missing"
    REASON_DEPENDENCY_NO_WORKFLOW = "reason.dependency_no_workflow"
    REASON_DEPENDENCY_RUN = "reason.dependency_run"
    REASON_DEPENDENCY_TASK = "reason.dependency_task"
    REASON_DISABLED = "reason.disabled"
    REASON_EXIT_CODE = "reason.exit_code"
    REASON_FAILURES_IGNORED = "reason.failures_ignored"
    REASON_FORCED = "reason.forced"
    REASON_ITEMS = "reason.items"
    REASON_KILLED_BETWEEN_LOOKS = "reason.killed_between_looks"
    REASON_KILLED_BY_REQUEST_UNSTARTED = "reason.killed_by_request_unstarted"
    REASON_KILLED_FOR = "reason.killed_for"
    REASON_KILLED_UNSTARTED = "reason.killed_unstarted"
    REASON_NONE_FAILED = "reason.none_failed"
    REASON_NONE_SUCCEEDED = "reason.none_succeeded"
    REASON_NOT_SELECTED = "reason.not_selected"
    REASON_NOT_STARTED = "reason.not_started"
    REASON_NO_BRANCH = "reason.no_branch"
    REASON_NO_RUN = "reason.no_run"
    REASON_OTHER_BRANCH = "reason.other_branch"
    REASON_RAN_LONGER = "reason.ran_longer"
    REASON_REPLACED = "reason.replaced"
    REASON_SIGNAL = "reason.signal"
    REASON_STOPPED = "reason.stopped"
    REASON_STOPPED_BETWEEN_LOOKS = "reason.stopped_between_looks"
    REASON_STOPPED_UNSTARTED = "reason.stopped_unstarted"
    REASON_SUPERSEDED = "reason.superseded"
    REASON_TASKS_FAILED = "reason.tasks_failed"
    REASON_TIMED_OUT = "reason.timed_out"
    REASON_UPSTREAM_FAILED = "reason.upstream_failed"
    REASON_UPSTREAM_KILLED = "reason.upstream_killed"
    REASON_UPSTREAM_LOST = "reason.upstream_lost"
    REASON_UPSTREAM_SKIPPED = "reason.upstream_skipped"
    REASON_WORKER_GONE = "reason.worker_gone"


Argument = str | int | float | None


@dataclass(frozen=True)
class Said:
    """A sentence, and the code with arguments that it is made of."""

    code: Code
    text: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)


class HealthCode(StrEnum):
    """Why a cluster is degraded. A code keeps its meaning and its arguments."""

    DATABASE = "health.database"
    ZOOKEEPER = "health.zookeeper"
    PARTITIONS = "health.partitions"
    NO_MASTER = "health.no_master"
    NO_WORKER = "health.no_worker"
    MASTER_DATABASE = "health.master_database"
    FENCED = "health.fenced"
    LOST_COMMITS = "health.lost_commits"
    COMMANDS = "health.commands"
    WORKER_GROUPS = "health.worker_groups"
    QUEUED = "health.queued"
    QUARANTINED = "health.quarantined"
    SKIPPED = "health.skipped"
    ALERTS_LAG = "health.alerts_lag"
    EXPORT_LAG = "health.export_lag"
    PURGE_AGE = "health.purge_age"
    LOOP_LAG = "health.loop_lag"
