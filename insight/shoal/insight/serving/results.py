"""The results that are served, and their columns: for the jobs, the loader and the database.

``docs/insight.md`` says what the columns mean. A result without a project is of the whole cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from shoal.core.insight.aggregates import COSTS, RUN_DAYS, TASK_DAYS, Aggregation


class ValueKind(StrEnum):
    """What a column holds. Times are UTC."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    YES_NO = "yes_no"
    TIME = "time"
    DAY = "day"


_KINDS = {
    "string": ValueKind.TEXT,
    "int": ValueKind.INTEGER,
    "bigint": ValueKind.INTEGER,
    "double": ValueKind.NUMBER,
    "boolean": ValueKind.YES_NO,
    "timestamp": ValueKind.TIME,
    "date": ValueKind.DAY,
}


@dataclass(frozen=True)
class ServedResult:
    """A result. ``is_snapshot``: as of a day, looking back; of these only the newest one counts.

    ``declared``: all columns in their order, ``name type, name type`` …, with the names that SQL
    has for types. ``aggregation``: how its rows become one for each workflow, for views over weeks.
    """

    declared: str
    is_snapshot: bool = False
    aggregation: Aggregation[Any] | None = None

    @cached_property
    def columns(self) -> Mapping[str, ValueKind]:
        """The columns that are loaded: all but ``day``, which is in the name of a file."""
        pairs = (column.split() for column in self.declared.split(","))
        return {name: _KINDS[kind] for name, kind in pairs if name != "day"}

    @property
    def has_project(self) -> bool:
        """Whether its rows are of workflows."""
        return "project" in self.columns


def _spread(name: str, percentiles: str = "p50 p95 p99") -> str:
    columns = (*percentiles.split(), "mean", "max")
    return ", ".join(f"{name}_{what} double" for what in columns)


RESULTS: Mapping[str, ServedResult] = {
    "task_days": ServedResult(
        "day date, project string, workflow string, task string, type string, attempts bigint, "
        "succeeded bigint, failed bigint, lost bigint, killed bigint, skipped bigint, "
        "rescheduled bigint, retries bigint, "
        f"{_spread('duration')}, {_spread('wait')}, "
        "busy_s double, cpu_s double, max_rss_kb bigint",
        aggregation=TASK_DAYS,
    ),
    "critical_days": ServedResult(
        "day date, project string, workflow string, task string, runs bigint, runs_of_day bigint, "
        "own_p50_s double, own_mean_s double, gain_mean_s double, gain_max_s double, "
        "gain_sum_s double"
    ),
    "workflow_days": ServedResult(
        "day date, project string, workflow string, runs bigint, succeeded bigint, failed bigint, "
        "stopped bigint, by_schedule bigint, by_backfill bigint, by_parent bigint, "
        "by_rerun bigint, by_request bigint, late bigint, "
        f"{_spread('duration')}, {_spread('admission')}, {_spread('critical', 'p50 p95')}",
        aggregation=RUN_DAYS,
    ),
    "worker_days": ServedResult(
        "day date, worker string, attempts bigint, failed bigint, lost bigint, busy_s double, "
        "hours bigint, slots bigint, utilisation double"
    ),
    "concurrency_hours": ServedResult(
        "day date, hour int, worker_group string, running_mean double, running_max bigint, "
        "waiting_mean double, waiting_max bigint, needed_max bigint"
    ),
    "capacity": ServedResult(
        "day date, forecast_day date, hour int, worker_group string, slots int, expected double, "
        "tested_hours int, error_p50 double, within_p95 double",
        is_snapshot=True,
    ),
    "costs": ServedResult(
        "day date, project string, workflow string, task string, label string, value string, "
        "attempts bigint, cpu_s double, memory_gb_s double, slot_s double",
        aggregation=COSTS,
    ),
    "failures": ServedResult(
        "day date, fingerprint string, project string, workflow string, task string, "
        "sample string, first_seen timestamp, last_seen timestamp, count bigint, count_day bigint"
    ),
    "flapping": ServedResult(
        "day date, project string, workflow string, task string, runs bigint, changes bigint, "
        "failed_rate double, retried_rate double, last_seen timestamp",
        is_snapshot=True,
    ),
    "baselines": ServedResult(
        "day date, project string, workflow string, task string, weekday int, hour int, n bigint, "
        "p50_s double, p95_s double, mad_s double, late_after_s double, wait_n bigint, "
        "wait_p50_s double, wait_p95_s double, wait_mad_s double",
        is_snapshot=True,
    ),
    "baseline_errors": ServedResult(
        "day date, project string, workflow string, runs bigint, error_p50_s double, "
        "error_share_p50 double, within_p95 double, late_share double",
        is_snapshot=True,
    ),
    "schedule_minutes": ServedResult(
        "day date, scope string, minute int, starts_mean double, starts_max bigint, "
        "skew_p50_s double, skew_p95_s double, skew_max_s double, is_hot boolean",
        is_snapshot=True,
    ),
    "schedule_moves": ServedResult(
        "day date, place int, schedule_id bigint, project string, workflow string, minute int, "
        "move_min int, starts_per_day double, highest_before double, highest_after double",
        is_snapshot=True,
    ),
}
