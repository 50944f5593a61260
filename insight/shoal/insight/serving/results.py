"""Which results are loaded into the database, and the columns that each has.

``docs/insight.md`` says what the columns mean; the column ``day`` is in the name of a file. A
result without a project is of the cluster as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from shoal.core.insight.aggregates import COSTS, RUN_DAYS, TASK_DAYS, Aggregation


class Kind(StrEnum):
    """What a column holds. Times are UTC."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    YES_NO = "yes_no"
    TIME = "time"
    DAY = "day"


@dataclass(frozen=True)
class Result:
    """A result. ``is_snapshot``: as of a day, looking back; of these only the newest one counts.

    ``aggregation``: how its rows become one for each workflow, for views over weeks.
    """

    columns: Mapping[str, Kind]
    is_snapshot: bool = False
    aggregation: Aggregation[Any] | None = None

    @property
    def has_project(self) -> bool:
        """Whether its rows are of workflows."""
        return "project" in self.columns


def _columns(
    texts: str = "", integers: str = "", numbers: str = "", **more: Kind
) -> dict[str, Kind]:
    return {
        **dict.fromkeys(texts.split(), Kind.TEXT),
        **dict.fromkeys(integers.split(), Kind.INTEGER),
        **dict.fromkeys(numbers.split(), Kind.NUMBER),
        **more,
    }


def _spread(name: str, percentiles: str = "p50 p95 p99") -> str:
    return " ".join(f"{name}_{what}" for what in (*percentiles.split(), "mean", "max"))


RESULTS: Mapping[str, Result] = {
    "task_days": Result(
        _columns(
            texts="project workflow task type",
            integers="attempts succeeded failed lost killed skipped rescheduled retries max_rss_kb",
            numbers=f"{_spread('duration')} {_spread('wait')} busy_s cpu_s",
        ),
        aggregation=TASK_DAYS,
    ),
    "critical_days": Result(
        _columns(
            texts="project workflow task",
            integers="runs runs_of_day",
            numbers="own_p50_s own_mean_s gain_mean_s gain_max_s gain_sum_s",
        )
    ),
    "workflow_days": Result(
        _columns(
            texts="project workflow",
            integers="runs succeeded failed stopped by_schedule by_backfill by_parent by_rerun "
            "by_request late",
            numbers=" ".join(
                (_spread("duration"), _spread("admission"), _spread("critical", "p50 p95"))
            ),
        ),
        aggregation=RUN_DAYS,
    ),
    "worker_days": Result(
        _columns(
            texts="worker",
            integers="attempts failed lost hours slots",
            numbers="busy_s utilisation",
        )
    ),
    "concurrency_hours": Result(
        _columns(
            texts="worker_group",
            integers="hour running_max waiting_max needed_max",
            numbers="running_mean waiting_mean",
        )
    ),
    "capacity": Result(
        _columns(
            texts="worker_group",
            integers="hour slots tested_hours",
            numbers="expected error_p50 within_p95",
            forecast_day=Kind.DAY,
        ),
        is_snapshot=True,
    ),
    "costs": Result(
        _columns(
            texts="project workflow task label value",
            integers="attempts",
            numbers="cpu_s memory_gb_s slot_s",
        ),
        aggregation=COSTS,
    ),
    "failures": Result(
        _columns(
            texts="project workflow task fingerprint sample",
            integers="count count_day",
            first_seen=Kind.TIME,
            last_seen=Kind.TIME,
        )
    ),
    "flapping": Result(
        _columns(
            texts="project workflow task",
            integers="runs changes",
            numbers="failed_rate retried_rate",
            last_seen=Kind.TIME,
        ),
        is_snapshot=True,
    ),
    "baselines": Result(
        _columns(
            texts="project workflow task",
            integers="weekday hour n wait_n",
            numbers="p50_s p95_s mad_s late_after_s wait_p50_s wait_p95_s wait_mad_s",
        ),
        is_snapshot=True,
    ),
    "baseline_errors": Result(
        _columns(
            texts="project workflow",
            integers="runs",
            numbers="error_p50_s error_share_p50 within_p95 late_share",
        ),
        is_snapshot=True,
    ),
    "schedule_minutes": Result(
        _columns(
            texts="scope",
            integers="minute starts_max",
            numbers="starts_mean skew_p50_s skew_p95_s skew_max_s",
            is_hot=Kind.YES_NO,
        ),
        is_snapshot=True,
    ),
    "schedule_moves": Result(
        _columns(
            texts="project workflow",
            integers="place schedule_id minute move_min",
            numbers="starts_per_day highest_before highest_after",
        ),
        is_snapshot=True,
    ),
}
