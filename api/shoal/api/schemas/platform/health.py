"""Health of the cluster."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.runs.quarantine import ItemConsumer, ItemKind
from shoal.core.runs.why.codes import HealthCode


class Live(Answer):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Check(BaseModel):
    """One thing that the API depends on."""

    ok: bool
    detail: str = Field(description="What was found, in words; why it fails, administrators see.")


class Checks(BaseModel):
    """What was looked at."""

    database: Check
    zookeeper: Check
    partitions: Check = Field(
        description="Not ok if, for a session timeout (10 s), a partition has had no owner, or an "
        "owner in ZooKeeper that is not the one in the database."
    )
    commands: Check = Field(
        description="Not ok if commands have been pending for longer than `pending_limit_s` (30 s) "
        "without a good reason."
    )
    worker_groups: Check = Field(
        default=Check(ok=True, detail="not known"),
        description="Not ok if tasks wait for a worker group that has no workers.",
    )
    masters: int
    workers: int
    paused_workers: int = Field(description="Workers that take no further tasks, see /cluster.")
    set_aside: int = Field(description="What masters cannot work with, see /cluster.")
    damaged_znodes: int | None = Field(
        description="Damaged znodes that were found and repaired of late, see /cluster; "
        "null without ZooKeeper."
    )


class ClockDifference(BaseModel):
    """A wall clock that is off by more than 2 s. What is due goes by the cluster's time."""

    clock: str = Field(description="Whose it is.")
    ahead_s: float = Field(description="Seconds ahead of the cluster's time; negative: behind.")


class HealthFinding(BaseModel):
    """One reason why the cluster is degraded."""

    code: HealthCode = Field(description="What is wrong, for programs: docs/codes.md has them all.")
    arguments: dict[str, str | int | float | None] = Field(description="What the text says it of.")
    text: str = Field(description="In English, with the next step where there is one.")


class LongestStep(BaseModel):
    """How long a process has worked without a pause: its other requests waited meanwhile."""

    process: str = Field(description="Its kind and id, or: this API process.")
    recent_s: float = Field(
        description="The longest step of the event loop in the last 5 minutes, in seconds of "
        "processor time. Of masters and workers rounded down to a power of two."
    )
    ever_s: float = Field(description="The longest one since the process started.")


class QuarantinedOut(BaseModel):
    """What a part of Shoal cannot work with: it stops nothing else."""

    consumer: str = Field(description="masters, alerts, history.")
    kind: str = Field(
        description="Of masters: instance, command, schedule, backfill, concurrency group, purge; "
        "of alert servers: event, message, alert, workflow, condition, cluster."
    )
    item: str = Field(description="Its id, or its name.")
    project: str | None
    workflow: str | None
    reason: str
    tries: int = Field(description="How often it has failed.")
    since: datetime
    last_at: datetime = Field(description="When it failed last.")
    is_skipped: bool = Field(
        description="Nothing tries it again by itself: what comes after it was worked with."
    )
    retry_at: datetime | None = Field(
        default=None, description="When a retry was requested that is not done yet."
    )


class QuarantinedRef(RequestBody):
    """Which quarantined item, as lists show it."""

    consumer: ItemConsumer
    kind: ItemKind
    item: str = Field(min_length=1, max_length=255, description="Its id, or its name.")


class QuarantineOut(BaseModel):
    """Everything that is quarantined, of all consumers."""

    held: int = Field(description="Items that are tried again until they work.")
    skipped: int = Field(description="Items that are not tried again; kept for people to look at.")
    newest: list[QuarantinedOut] = Field(description="The newest ones; for administrators.")


class Health(Answer):
    """Whether the cluster can do its work."""

    status: Literal["ok", "degraded"]
    checks: Checks
    masters: int = Field(description="Live masters.")
    workers: int = Field(description="Live workers.")
    version: str
    master_troubles: list[str] = Field(
        default=[],
        description="Masters that the database does not answer, in words; for administrators.",
    )
    quarantine: QuarantineOut | None = Field(
        default=None,
        description="What is quarantined, and why. It makes the status degraded until it works "
        "again or is discarded. Null: the database cannot be asked.",
    )
    findings: list[HealthFinding] = Field(
        default=[],
        description="Why the status is degraded; empty: it is ok. Others than administrators "
        "see the codes alone.",
    )
    clock_differences: list[ClockDifference] = Field(
        default=[],
        description="For administrators: clocks that should be synchronised. They do not make the "
        "status degraded: the cluster's time does not follow them.",
    )
    longest_steps: list[LongestStep] = Field(
        default=[],
        description="For administrators: the longest steps of the event loops of this API process "
        "and of masters and workers that had one of 0.125 s or more, at most 20, the longest "
        "first. They do not make the status degraded.",
    )
