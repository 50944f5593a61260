"""Settings of a master process."""

from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from shoal.core.runs.retention import Hours, Retention
from shoal.core.timing.cron.expression import parse
from shoal.core.timing.cron.trigger import ShoalCronTrigger
from shoal.runtime.settings import Interval

_MOST_FIRES = 2_000  # that are looked at for the longest time between two


class MasterSettings(BaseSettings):
    """Section ``[master]`` of the settings file, or ``SHOAL_MASTER_…``."""

    model_config = SettingsConfigDict(env_prefix="SHOAL_MASTER_", frozen=True, extra="forbid")

    host: str = "127.0.0.1"  # address at which workers and other masters reach this one
    port: int = Field(default=0, ge=0, le=65535)  # of the gRPC server; 0 takes a free one
    scan_interval_s: Interval = 5.0  # commands are re-read at least this often
    scan_batch: int = Field(default=500, ge=1)  # commands turned into instances at once
    # Starts beyond this many open instances stay pending; sub-workflows are never held back.
    max_open_instances: int = Field(default=10_000, ge=1)
    # Runs of sub-workflows, at any depth, that one run may have.
    max_descendants: int = Field(default=5_000, ge=1)
    decide_batch: int = Field(default=500, ge=1)  # events decided and stored at once
    sweep_interval_s: Interval = 5.0  # queue and claims are compared this often
    takeover_delay_s: float = Field(default=0.0, ge=0)  # wait before taking a lost partition
    # How long the first master waits for others before it takes all partitions.
    initial_rebalance_delay_s: float = Field(default=0.5, ge=0)
    # How long a master may take to let go of partitions before the others go on without it.
    rebalance_timeout_s: float = Field(default=20.0, gt=0)
    kill_retry_s: float = Field(default=2.0, gt=0)  # a kill is repeated after this long
    # How long history is kept, in days; 0: for ever. See docs/retention.md.
    keep_instances_days: float = Field(default=90.0, ge=0)  # finished, with attempts and events
    keep_newest_instances: int = Field(default=10, ge=0, le=1000)  # of each workflow, however old
    keep_events_days: float = Field(default=30.0, ge=0)
    # At least: so long an idempotency key is known. And as long as what it has made.
    keep_commands_days: float = Field(default=7.0, ge=0)
    keep_backfills_days: float = Field(default=90.0, ge=0)  # finished, with their instances
    # Of resources: versions that have been replaced, but for the newest of a file; deleted files.
    keep_deleted_resources_days: float = Field(default=30.0, ge=0)
    keep_resource_versions: int = Field(default=20, ge=1, le=10_000)
    keep_archived_logs_days: float = Field(default=0.0, ge=0)  # 0: as long as the run's row
    # Times of day to purge at, as a cron expression; empty: every purge_interval_s, in purge_hours.
    purge_cron: str = ""
    purge_hours: str = ""  # HH:MM-HH:MM; empty: at any time
    purge_timezone: str = "UTC"  # of purge_cron and purge_hours
    purge_interval_s: Interval = 300.0  # between two purges, at least
    purge_batch: int = Field(default=200, ge=1, le=10_000)  # instances in one transaction
    # Of the time, so much is spent on deleting at most; the rest is for work.
    purge_share: float = Field(default=0.1, gt=0, le=1)
    # How often what has ended is exported to the history, and the share of the time in which that
    # may have the database at work; 0 days keep all that was exported.
    export_interval_s: Interval = 900.0
    export_share: float = Field(default=0.2, gt=0, le=1)
    keep_history_days: float = Field(default=1_100.0, ge=0)
    # Roll-ups of the history, of days; 0: for ever.
    keep_rollups_days: float = Field(default=400.0, ge=0)

    @model_validator(mode="after")
    def _purge_times_can_be_read(self) -> Self:
        _ = self.hours, self.purge_trigger
        if self.purge_cron and self.purge_hours:
            raise ValueError("purge_cron and purge_hours are both set; remove one of them")
        return self

    @property
    def retention(self) -> Retention:
        """The rules for what is kept."""
        return Retention.of_days(
            instances=self.keep_instances_days,
            newest=self.keep_newest_instances,
            events=self.keep_events_days,
            commands=self.keep_commands_days,
            backfills=self.keep_backfills_days,
        )

    @property
    def purge_trigger(self) -> ShoalCronTrigger | None:
        """At what times of day masters purge; None: see ``hours``. Raises InvalidCron."""
        if not self.purge_cron:
            return None
        return ShoalCronTrigger(parse(self.purge_cron, self.purge_timezone))

    @property
    def purge_period_s(self) -> float:
        """The longest time from one purge to the next, seconds."""
        if (trigger := self.purge_trigger) is None:
            return max(self.purge_interval_s, 86_400.0 if self.purge_hours else 0.0)
        longest_s, before = self.purge_interval_s, datetime.now(UTC)
        for _ in range(_MOST_FIRES):
            if (moment := trigger.cron.next(before)) is None:
                break
            longest_s = max(longest_s, (moment - before).total_seconds())
            before = moment
        return longest_s

    @property
    def hours(self) -> Hours:
        """When masters purge by themselves. Raises ValueError."""
        try:
            zone = ZoneInfo(self.purge_timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"purge_timezone {self.purge_timezone!r} is not a time zone") from None
        if not self.purge_hours:
            return Hours(time(), time(), zone)
        start, dash, end = self.purge_hours.partition("-")
        try:
            if not dash:
                raise ValueError
            return Hours(time.fromisoformat(start.strip()), time.fromisoformat(end.strip()), zone)
        except ValueError:
            raise ValueError(
                f"purge_hours {self.purge_hours!r} is not a part of the day; write 01:00-05:00"
            ) from None


@dataclass(frozen=True)
class UpkeepTimes:
    """When a master's periodic jobs run, in seconds. Not in the settings file."""

    first: float = 120.0  # after the start: by then the partitions have their owners
    resources: float = 3_600.0
    archived_logs: float = 3_600.0
    kept_logs: float = 86_400.0  # where logs outlive their runs, and each one is looked at
    marks: float = 20.0  # between two looks for new roll-ups
    rollups: float = 3_600.0  # without a mark: days may be too old by now, or missing
    rollups_after_failure: float = 300.0
    longest_program: float = 7_200.0  # of a process that exports or loads; what it stored counts
